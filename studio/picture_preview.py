"""Picture bytes to a small upright QImage for lists and the framing view.

The engine judges pictures; this only shows them, so whatever cannot be read is no image and no
error. Knows nothing of faces.
"""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage

LONGEST_PX = 900  # of a preview's longer side


def preview(picture: bytes, longest_px: int = LONGEST_PX) -> tuple[QImage, QSize]:
    """(image of at most `longest_px`, size of the full upright picture); null image if unread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _read(picture, longest_px)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return QImage(), QSize()


def _read(picture: bytes, longest_px: int) -> tuple[QImage, QSize]:
    with Image.open(io.BytesIO(picture)) as opened:
        upright = opened.getexif().get(0x0112, 1) < 5  # 5..8 lie on their side
        size = QSize(*opened.size) if upright else QSize(opened.height, opened.width)
        opened.draft("RGB", (longest_px, longest_px))
        opened.thumbnail((longest_px, longest_px))
        turned = ImageOps.exif_transpose(opened)
        over = Image.new("RGBA", turned.size, (127, 127, 127, 255))
        over.alpha_composite(turned.convert("RGBA"))
    image = QImage(over.tobytes(), over.width, over.height, QImage.Format.Format_RGBA8888)
    return image.convertToFormat(QImage.Format.Format_RGB32), size
