"""Colours of a decoded picture: 16 bit to 8, CMYK and profiles to sRGB, see-through to opaque.

Knows nothing of files, sizes or faces.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageCms

CALM_TOP_RGB = (186, 194, 202)
CALM_BOTTOM_RGB = (139, 149, 160)


def to_8_bit(image: Image.Image) -> Image.Image:
    """Any mode of Pillow -> L, RGB, RGBA or CMYK of 8 bits."""
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_grey_8_bit(np.asarray(image)))
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode in ("L", "RGB", "CMYK"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _grey_8_bit(values: np.ndarray) -> np.ndarray:
    """Deep grey [h, w] -> uint8. The full scale is the smallest usual one that holds the values:
    12 bits in a file of 16 would else come out black."""
    grey = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=65535.0, neginf=0.0)
    highest = float(grey.max(initial=0.0))
    full_scale = next((s for s in (1.0, 255.0, 4095.0, 65535.0) if highest <= s), highest)
    return np.clip(grey * (255.0 / full_scale) + 0.5, 0, 255).astype(np.uint8)


def flattened(image: Image.Image, profile: bytes) -> tuple[Image.Image, bool]:
    """8-bit picture -> opaque sRGB, and whether there was something to see through."""
    opaque = _to_srgb(image, profile)
    if image.mode != "RGBA":
        return opaque, False
    alpha = image.getchannel("A")
    if np.asarray(alpha).min() >= 250:  # one or two levels of dither are not transparency
        return opaque, False
    background = calm_background(image.width, image.height)
    background.paste(opaque, mask=alpha)
    return background, True


def calm_background(width: int, height: int) -> Image.Image:
    """A grey that is a little darker below: lets dark and light hair stand out."""
    ramp = np.linspace(CALM_TOP_RGB, CALM_BOTTOM_RGB, height).astype(np.uint8)
    return Image.fromarray(np.ascontiguousarray(np.broadcast_to(ramp[:, None], (height, width, 3))))


def _to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """RGB of 8 bits. A profile that cannot be used is ignored: wrong tint beats no picture."""
    image = image.convert("RGB") if image.mode == "RGBA" else image
    if profile and image.mode in ("RGB", "CMYK"):
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            if "srgb" not in ImageCms.getProfileDescription(source).lower():
                target = ImageCms.createProfile("sRGB")
                moved = ImageCms.profileToProfile(image, source, target, outputMode="RGB")
                return moved if moved is not None else image.convert("RGB")
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            pass
    return image if image.mode == "RGB" else image.convert("RGB")  # a copy costs 40 ms at 12 MP
