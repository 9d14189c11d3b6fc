"""Where each phone and word of a clip lies: arrays in samples of 48 kHz, and their JSON file.

Knows nothing of lips or pictures, nor how the times were found: `forced.py` and the set's recipe
find them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME
from engine.errors import EngineError
from engine.motion.phone_track import Phone
from engine.speech.encoded import PHONE_INDEX, PHONES

FORMAT = 1
SILENCE = PHONE_INDEX["SIL"]
SHORTEST_PAUSE = SAMPLE_RATE // 5  # samples: 200 ms
Row = tuple[str, int, int]  # a phone, its start and end in samples


class AlignmentFile(msgspec.Struct, kw_only=True):
    """The JSON: phones without gaps from 0 to `samples`, words with gaps."""

    format: int
    clip: str
    sample_rate: int
    samples: int
    aligner: str
    aligner_version: str
    exact: bool
    words: list[tuple[str, int, int]]
    phones: list[tuple[str, int, int]]
    cross_check: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """What is said from sample `start` up to `end`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """P phones in order, the first from sample 0, the last to `samples`, without a gap."""

    names: tuple[str, ...]  # of PHONES; SIL is a pause
    starts: np.ndarray  # [P] int64
    ends: np.ndarray  # [P] int64
    words: tuple[Word, ...]
    samples: int
    aligner: str
    aligner_version: str
    exact: bool  # times are known by construction, not measured
    cross_check: dict[str, Any] | None = field(default=None)

    @property
    def index(self) -> np.ndarray:
        """[P] int: each phone's place in PHONES."""
        return np.array([PHONE_INDEX[name] for name in self.names], np.int64)

    @property
    def rows(self) -> list[Row]:
        """Name, start and end of each phone."""
        return list(zip(self.names, self.starts.tolist(), self.ends.tolist(), strict=True))

    @property
    def phones(self) -> list[Phone]:
        """The same in seconds, as motion and metrics take it."""
        return [Phone(name, a / SAMPLE_RATE, b / SAMPLE_RATE) for name, a, b in self.rows]

    def at(self, samples: np.ndarray) -> np.ndarray:
        """[N] int: the phone (index into PHONES) at each sample time; SIL outside the clip."""
        place = np.searchsorted(self.starts, samples, side="right") - 1
        inside = (samples >= 0) & (samples < self.samples)
        return np.where(inside, self.index[np.clip(place, 0, None)], SILENCE)

    def frames(self, count: int) -> np.ndarray:
        """[count] int: the phone at each frame's centre."""
        return self.at(np.arange(count) * SAMPLES_PER_FRAME + SAMPLES_PER_FRAME // 2)

    def spans(self, names: Iterable[str]) -> np.ndarray:
        """[K, 2] int64: start and end of each of these phones, in order."""
        wanted = np.isin(self.index, [PHONE_INDEX[name] for name in names])
        return np.stack([self.starts[wanted], self.ends[wanted]], 1)

    def pauses(self, shortest: int = SHORTEST_PAUSE) -> np.ndarray:
        """[K, 2] int64: silences of at least `shortest` samples; neighbouring ones are one."""
        joined: list[list[int]] = []
        for start, end in self.spans(("SIL",)):
            if joined and joined[-1][1] == start:
                joined[-1][1] = int(end)
            else:
                joined.append([int(start), int(end)])
        kept = [span for span in joined if span[1] - span[0] >= shortest]
        return np.array(kept, np.int64).reshape(-1, 2)

    def moved(self, by: int) -> Alignment:
        """The same phones `by` samples later; what leaves the clip is cut, the rest is silence."""
        rows = [(name, a + by, b + by) for name, a, b in self.rows]
        words = tuple(replace(w, start=w.start + by, end=w.end + by) for w in self.words)
        return self.with_rows(rows, words, self.samples)

    def with_rows(self, rows: Iterable[Row], words: tuple[Word, ...], samples: int) -> Alignment:
        """Other times from the same aligner. Raises EngineError as `alignment_of`."""
        return replace(
            alignment_of(rows, words, samples), aligner=self.aligner,
            aligner_version=self.aligner_version, exact=self.exact, cross_check=self.cross_check,
        )  # fmt: skip


def alignment_of(rows: Iterable[Row], words: tuple[Word, ...], samples: int) -> Alignment:
    """Phones in order, cut to the clip and with gaps filled by silence.

    Raises:
        EngineError: "bad_input" for an unknown phone or times that run backwards.
    """
    names: list[str] = []
    edges: list[int] = [0]
    for name, start, end in rows:
        if name not in PHONE_INDEX or end < start:
            problem = f"phone {name!r} from {start} to {end} is not ARPAbet or runs backwards"
            raise EngineError("bad_input", problem, "correct the alignment")
        start, end = max(edges[-1], min(start, samples)), max(0, min(end, samples))
        if start > edges[-1]:
            names.append("SIL")
            edges.append(start)
        if end > edges[-1]:
            names.append(name)
            edges.append(end)
    if edges[-1] < samples:
        names.append("SIL")
        edges.append(samples)
    bounds = np.array(edges, np.int64)
    return Alignment(tuple(names), bounds[:-1], bounds[1:], words, samples, "", "", False)


def read_alignment(path: Path) -> Alignment:
    """Raises EngineError("missing_asset" or "bad_config"), one line, on a missing or bad file."""
    try:
        data = msgspec.json.decode(path.read_bytes(), type=AlignmentFile)
    except FileNotFoundError as error:
        raise EngineError("missing_asset", f"{path} is missing", "reinstall the program") from error
    except msgspec.DecodeError as error:
        raise _damaged(path, str(error)) from error
    if data.format != FORMAT or data.sample_rate != SAMPLE_RATE:
        raise _damaged(path, f"format {data.format} at {data.sample_rate} Hz")
    edges = [0, *(end for _, _, end in data.phones)]
    if [start for _, start, _ in data.phones] != edges[:-1] or edges[-1] != data.samples:
        raise _damaged(path, "its phones do not cover the clip without gaps")
    if unknown := {name for name, _, _ in data.phones} - set(PHONES):
        raise _damaged(path, f"unknown phones {sorted(unknown)}")
    found = alignment_of(data.phones, tuple(Word(*w) for w in data.words), data.samples)
    return replace(
        found,
        aligner=data.aligner,
        aligner_version=data.aligner_version,
        exact=data.exact,
        cross_check=data.cross_check,
    )


def _damaged(path: Path, reason: str) -> EngineError:
    return EngineError("bad_config", f"{path.name} is damaged: {reason}", "take the shipped file")


def write_alignment(path: Path, clip: str, alignment: Alignment) -> None:
    """The JSON of `clip`, one phone a line so that changes can be read."""
    data = AlignmentFile(
        format=FORMAT,
        clip=clip,
        sample_rate=SAMPLE_RATE,
        samples=alignment.samples,
        aligner=alignment.aligner,
        aligner_version=alignment.aligner_version,
        exact=alignment.exact,
        words=[(w.text, w.start, w.end) for w in alignment.words],
        phones=alignment.rows,
        cross_check=alignment.cross_check,
    )
    text = msgspec.json.format(msgspec.json.encode(data), indent=0).decode()
    path.write_text(text + "\n", "utf-8")
