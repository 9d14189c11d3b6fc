"""Where time goes: per-stage samples of the last 60 s, their p50 and p95, fps, drops by reason.

Thread-safe; `now_ns` is time.monotonic_ns() and always an argument. Knows nothing of widgets.
"""

from __future__ import annotations

import csv
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.protocol.frame import Frame
from engine.protocol.messages import ChunkTimings, RankTime

STAGES = ("capture", "audio", "encode", "denoise", "decode", "transport", "paint")
LATENCY = "mic_to_picture"  # sound at the microphone to matching lips painted
KEEP_NS = 60_000_000_000
# 60 s of frames at 24 fps with room for bursts; a bound that no clock can defeat
KEEP_SAMPLES = 2_400
FPS_WINDOW_NS = 2_000_000_000
STOPPED_NS = 125_000_000  # three frames without a paint: fps starts to fall


@dataclass(frozen=True, slots=True)
class Spread:
    p50_ms: float
    p95_ms: float
    count: int


@dataclass(frozen=True, slots=True)
class RankSpread:
    """One rank of a session on several GPUs: per frame, of it `comm_ms` (p50) between ranks."""

    rank: int
    stage: str
    device: str
    spread: Spread
    comm_ms: float


@dataclass(frozen=True, slots=True)
class TimingsView:
    """The last 60 s; `latency` is None until a frame with a capture time was painted."""

    fps: float
    latency: Spread | None
    stages: dict[str, Spread]
    dropped: dict[str, int]  # since start, by reason
    frames_painted: int
    frames_late: int
    ranks: tuple[RankSpread, ...] = ()  # of the newest chunk's session, in order


class Timings:
    """Rings of (time, ms) per stage. `painted` is called by the viewer, the rest by the link."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rings: dict[str, deque[tuple[int, float]]] = {}
        self._paint_times: deque[int] = deque(maxlen=KEEP_SAMPLES)
        self._last_painted: tuple[int, int, int] | None = None
        self._ranks: dict[str, RankTime] = {}  # ring -> who; of the newest chunk
        self._dropped: dict[str, int] = {}
        self._late = 0
        self._painted = 0

    def add(self, stage: str, ms: float, now_ns: int) -> None:
        with self._lock:
            self._add(stage, ms, now_ns)

    def chunk(self, timings: ChunkTimings, now_ns: int) -> None:
        """Stage times of one chunk, spread over its frames so that stages add up per frame."""
        with self._lock:
            for stage, ms in timings.stage_ms.items():
                self._add(stage, ms / max(timings.frame_count, 1), now_ns)
            self._ranks = {f"{r.stage} rank {r.rank} {r.device}": r for r in timings.ranks}
            for name, r in self._ranks.items():
                self._add(name, r.ms / max(timings.frame_count, 1), now_ns)
                self._add(f"{name} exchange", r.comm_ms / max(timings.frame_count, 1), now_ns)

    def arrived(self, frame: Frame, now_ns: int) -> None:
        """Transport is arrival minus publication, on one host only (negative: clocks differ)."""
        transport_ms = (now_ns - frame.publish_time_ns) / 1e6
        if frame.publish_time_ns and 0 <= transport_ms < 10_000:
            self.add("transport", transport_ms, now_ns)

    def painted(self, frame: Frame, now_ns: int, paint_ms: float = 0.0) -> None:
        """A frame reached the screen at `now_ns`; repaints of the same frame do not count."""
        key = (frame.session, frame.epoch, frame.frame_index)
        with self._lock:
            if paint_ms > 0:
                self._add("paint", paint_ms, now_ns)
            if key == self._last_painted:
                return
            self._last_painted = key
            self._painted += 1
            self._paint_times.append(now_ns)
            if frame.capture_time_ns and not frame.idle:
                self._add(LATENCY, (now_ns - frame.capture_time_ns) / 1e6, now_ns)

    def dropped(self, reason: str, count: int = 1) -> None:
        with self._lock:
            self._dropped[reason] = self._dropped.get(reason, 0) + count

    def count(self, reason: str) -> int:
        """Dropped since start for `reason`."""
        with self._lock:
            return self._dropped.get(reason, 0)

    def late(self, count: int = 1) -> None:
        with self._lock:
            self._late += count

    def view(self, now_ns: int) -> TimingsView:
        with self._lock:
            rings = {name: self._recent(name, now_ns)[1] for name in self._rings}
            spreads = {name: _spread(ms) for name, ms in rings.items() if len(ms)}
            stages = {name: s for name, s in spreads.items() if name in STAGES}
            return TimingsView(
                self._fps(now_ns), spreads.get(LATENCY), stages, dict(self._dropped),
                self._painted, self._late, self._rank_spreads(spreads),
            )  # fmt: skip

    def _rank_spreads(self, spreads: dict[str, Spread]) -> tuple[RankSpread, ...]:
        return tuple(
            RankSpread(r.rank, r.stage, r.device, spreads[name], spreads[f"{name} exchange"].p50_ms)
            for name, r in self._ranks.items()
            if name in spreads
        )

    def stacked(self, now_ns: int, bins: int = 60) -> dict[str, np.ndarray]:
        """Mean ms per frame of each stage in `bins` equal slices of the last 60 s, oldest first."""
        edges = np.linspace(-60.0, 0.0, bins + 1)
        stacks = {}
        with self._lock:
            for stage in STAGES:
                age_s, ms = self._recent(stage, now_ns)
                total = np.histogram(age_s, edges, weights=ms)[0]
                count = np.histogram(age_s, edges)[0]
                stacks[stage] = total / np.maximum(count, 1)
        return stacks

    def latency_series(self, now_ns: int) -> tuple[np.ndarray, np.ndarray]:
        """(age_s [n] from -60 to 0, ms [n]) of the microphone-to-picture latency."""
        with self._lock:
            return self._recent(LATENCY, now_ns)

    def export_csv(self, path: Path) -> None:
        """One row a sample: stage, monotonic_s, ms; then one row a drop reason."""
        with self._lock:
            rows = [(t / 1e9, s, round(ms, 4)) for s, ring in self._rings.items() for t, ms in ring]
            drops = sorted(self._dropped.items())
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("stage", "monotonic_s", "ms"))
            writer.writerows((stage, at_s, ms) for at_s, stage, ms in sorted(rows))
            writer.writerows((f"dropped:{reason}", "", count) for reason, count in drops)

    def _add(self, stage: str, ms: float, now_ns: int) -> None:
        ring = self._rings.setdefault(stage, deque(maxlen=KEEP_SAMPLES))
        ring.append((now_ns, ms))

    def _recent(self, stage: str, now_ns: int) -> tuple[np.ndarray, np.ndarray]:
        kept = [(t, ms) for t, ms in self._rings.get(stage, ()) if now_ns - t <= KEEP_NS]
        table = np.array(kept, np.float64).reshape(-1, 2)
        return (table[:, 0] - now_ns) / 1e9, table[:, 1]

    def _fps(self, now_ns: int) -> float:
        recent = [t for t in self._paint_times if now_ns - t <= FPS_WINDOW_NS]
        if len(recent) < 2:
            return 0.0
        # up to the last paint while they flow, up to now once they have stopped
        end = now_ns if now_ns - recent[-1] > STOPPED_NS else recent[-1]
        return (len(recent) - 1) * 1e9 / max(end - recent[0], 1)


def _spread(ms: np.ndarray) -> Spread:
    p50, p95 = np.percentile(ms, [50, 95])
    return Spread(float(p50), float(p95), len(ms))
