"""Clips and noises -> one training shard. The held-out list is enforced here.

Knows nothing of nets or of how batches are disturbed.
`python -m engine.speech.corpus.pack --clips DIR --root / --out FILE.npz`
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from engine.speech.corpus.clip import Clip, load_clips
from engine.speech.corpus.noise import training_noise
from engine.speech.corpus.shard import codes_of, labels_of, write_arrays
from engine.speech.corpus.texts import is_reserved
from engine.speech.features import mel_power
from engine.speech.resample import ENCODER_RATE


class Shard:
    """Grows by clips and noises, then is written once."""

    def __init__(self) -> None:
        self.speech: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.noise: dict[str, list[np.ndarray]] = {}
        self.speakers: dict[str, float] = {}
        self._rng = np.random.default_rng(11)

    def add_clip(self, clip: Clip) -> None:
        """Append a clip and a pause of 0.1 s or more.

        Raises:
            ValueError: the speaker or the language is held out.
        """
        if not clip.may_train:
            raise ValueError(
                f"{clip.speaker} ({clip.language}) is held out and must not be trained on"
            )
        pause = 0.1 + min(1.0, self._rng.exponential(0.3))
        pcm = np.concatenate([clip.pcm, np.zeros(int(pause * ENCODER_RATE), np.float32)])
        codes = codes_of(mel_power(pcm))
        pair = (codes, labels_of(clip.phones, len(codes)))
        self.speech.setdefault(clip.source, []).append(pair)
        self.speakers[clip.speaker] = self.speakers.get(clip.speaker, 0.0) + clip.seconds

    def add_noise(self, kind: str, pcm: np.ndarray) -> None:
        self.noise.setdefault(kind, []).append(codes_of(mel_power(pcm)))

    def write(self, path: Path) -> None:
        """All parts in a row, with where each source starts, as one LZMA-compressed .npz."""
        sources, kinds = sorted(self.speech), sorted(self.noise)
        pairs = [pair for source in sources for pair in self.speech[source]]
        noises = [n for kind in kinds for n in self.noise[kind]]
        arrays = {
            "mel": np.concatenate([p[0] for p in pairs]),
            "labels": np.concatenate([p[1] for p in pairs]),
            "noise": np.concatenate(noises),
            "source_names": np.array(sources),
            "source_hops": np.array([sum(len(p[0]) for p in self.speech[s]) for s in sources]),
            "noise_names": np.array(kinds),
            "noise_hops": np.array([sum(map(len, self.noise[k])) for k in kinds]),
            "speakers": np.array(sorted(self.speakers)),
        }
        write_arrays(path, arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    shard = Shard()
    talk: list[Clip] = []
    for path in sorted(arguments.clips.glob("*.npz")):
        for clip in load_clips(path):
            if clip.may_train and not (clip.language.startswith("en") and is_reserved(clip.text)):
                shard.add_clip(clip)
                talk.append(clip)
    for kind, pcm in training_noise(arguments.root, talk[::7]):
        shard.add_noise(kind, pcm)
    shard.write(arguments.out)
    hours = {s: sum(len(c) for c, _ in v) / 96 / 3600 for s, v in shard.speech.items()}
    minutes = {k: round(sum(map(len, v)) / 96 / 60, 1) for k, v in shard.noise.items()}
    sys.stdout.write(
        f"hours { {s: round(h, 3) for s, h in hours.items()} }, {len(shard.speakers)} speakers, "
        f"noise minutes {minutes}\n"
    )


if __name__ == "__main__":
    main()
