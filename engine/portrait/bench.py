"""What a frame costs, by part: CPU milliseconds of one thread over a talking track.

Knows nothing of wall time or of other processes: run it on a quiet machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import cv2
import numpy as np

from engine.portrait.canvas import Canvas
from engine.portrait.coefficients import vector
from engine.portrait.grid import HEIGHT, WIDTH
from engine.portrait.renderer import PortraitRenderer

WARM_UP = 10


def talking(frames: int) -> np.ndarray:
    """[frames, COUNT] float32: speech-like motion with blinks, gaze, head and breath at 24 fps."""
    tokens = []
    for i in range(frames):
        t = i / 24
        syllable = 0.5 + 0.5 * np.sin(2 * np.pi * 4.1 * t)
        vowel = 0.5 + 0.5 * np.sin(2 * np.pi * 1.3 * t)
        closed = float(np.sin(2 * np.pi * 1.7 * t) > 0.9)
        blink = max(0.0, 1 - abs((t % 2.6) - 0.4) / 0.12)
        tokens.append(
            vector(
                seal=1, jawOpen=0.05 + 0.25 * syllable, mouthClose=closed,
                mouthFunnel=0.4 * vowel, mouthPucker=0.2 * vowel,
                mouthStretchL=0.3 * (1 - vowel), mouthStretchR=0.3 * (1 - vowel),
                mouthSmileL=0.1, mouthSmileR=0.1, upperLipUp=0.15 * syllable,
                lowerLipDown=0.15 * syllable, browInnerL=0.2 * vowel, browInnerR=0.2 * vowel,
                eyeBlinkL=blink, eyeBlinkR=blink, gazeX=0.2 * np.sin(t), gazeY=0.1,
                headYaw=5 * np.sin(0.9 * t), headPitch=3 * np.sin(1.3 * t),
                headRoll=2 * np.sin(0.7 * t), breath=0.5 + 0.5 * np.sin(1.6 * t),
            )
        )  # fmt: skip
    return np.stack(tokens)


def measure(canvases: Mapping[str, Canvas], frames: int = 240) -> dict[str, dict[str, float]]:
    """Name -> {"prepare_ms", "frame_p50", "frame_p95", "<part>_p50", "<part>_p95"}, CPU ms.

    The number of OpenCV's threads is the caller's: thread time counts this thread alone, so set
    it to 1.
    """
    return {name: _measure(canvas, frames) for name, canvas in canvases.items()}


def _measure(canvas: Canvas, frames: int) -> dict[str, float]:
    start = time.thread_time()
    renderer = PortraitRenderer(canvas, None, lambda fraction, what: None)
    found = {"prepare_ms": 1e3 * (time.thread_time() - start)}
    out = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    spent: dict[str, list[float]] = {}
    for i, token in enumerate(talking(frames + WARM_UP)):
        start = time.thread_time()
        renderer.render(token, out)
        whole = 1e3 * (time.thread_time() - start)
        if i >= WARM_UP:
            for part, ms in (("frame", whole), *renderer.stage_ms.items()):
                spent.setdefault(part, []).append(ms)
    for part, values in spent.items():
        found[f"{part}_p50"], found[f"{part}_p95"] = np.percentile(values, [50, 95]).tolist()
    return found


def main() -> int:
    """`python -m engine.portrait.bench IMAGE...`: one line a picture."""
    import sys
    from pathlib import Path

    from engine.character import load_character
    from engine.protocol.character import CharacterSpec

    cv2.setNumThreads(1)
    canvases = {
        path: load_character(Path(path).read_bytes(), CharacterSpec()).canvas
        for path in sys.argv[1:]
    }
    for name, values in measure(canvases).items():
        figures = " ".join(f"{part} {value:.2f}" for part, value in values.items())
        sys.stdout.write(f"{Path(name).stem}: {figures}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
