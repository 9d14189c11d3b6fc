"""The one clock: integer samples at 48 kHz, and what a frame is in samples.

Knows nothing of wall time, devices or threads. 48,000 / 24 = 2,000 exactly, so no rounding ever.
"""

from __future__ import annotations

SAMPLE_RATE = 48_000  # Hz, everywhere on wires and between modules
FPS = 24
SAMPLES_PER_FRAME = SAMPLE_RATE // FPS  # 2,000
SAMPLES_PER_BLOCK = SAMPLE_RATE // 50  # an AudioBlock is 20 ms = 960 samples
WIDTH, HEIGHT = 704, 1088  # px of every Frame


def frame_pts(frame_index: int) -> int:
    """First sample of a frame: 2000 * n."""
    return SAMPLES_PER_FRAME * frame_index


def frame_at(sample: int) -> int:
    """Index of the frame on screen while `sample` is heard (floor, also for negatives)."""
    return sample // SAMPLES_PER_FRAME


def samples_to_ms(samples: int) -> float:
    return samples * 1000 / SAMPLE_RATE


def ms_to_samples(milliseconds: float) -> int:
    return round(milliseconds * SAMPLE_RATE / 1000)
