"""How far our motion leads real lips, without drawing: `python -m engine.qa.lead` says `LEAD_S`.

The reference of planted faults must read zero. This poses its landmarks as the renderer would (6 s
for the whole set; pixels read the same within 0.1 frame) and asks both predictors. Only the `tune`
split chooses; `--split test` shows the other. Knows nothing of faults other than the reference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from engine.character import load_character
from engine.clock import FPS
from engine.portrait.renderer import PortraitRenderer
from engine.protocol.character_file import read_character
from engine.qa.clip_set import Clip, load_set
from engine.qa.expected import expected_opening, frame_times
from engine.qa.faults import LEAD_S, Subject, driven
from engine.qa.gauge import lip_gap
from engine.qa.mouth_scores import spoken
from engine.qa.offset import lag
from engine.qa.ridge import movements, predicted, ridge_lag
from engine.qa.validate import split_of, truth_of

TUNED = "tune"
Late = tuple[float, float]  # frames by the phones, by the second opinion


@lru_cache(maxsize=8)
def renderer_of(character: str) -> PortraitRenderer:
    spec, picture = read_character(load_set(verify=False).characters[character].file)
    canvas = load_character(picture, spec).canvas
    return PortraitRenderer(canvas, None, lambda fraction, what: None)


def late_of(clip: Clip, seed: int, lead_s: float) -> Late | None:
    """The reference of one clip with a moving head, driven `lead_s` late; None where its phones are
    not known or it is too short."""
    truth = truth_of(clip)
    if truth.phones is None:
        return None
    tokens = driven(Subject(truth, (), seed, True), truth.phones, truth.frames, lead_s)
    renderer = renderer_of(clip.character)
    points = np.stack([renderer.pose(token).points[:, :2] for token in tokens]).astype(np.float64)
    moves, times = movements(points), frame_times(len(tokens))
    part = spoken(truth.phones, len(tokens))
    first = lag(lip_gap(points)[part], expected_opening(truth.phones, times)[part])
    second = ridge_lag(moves, predicted(truth.pcm, times))
    return None if first is None or second is None else (first.late, second.late)


def lates(split: str = TUNED, lead_s: float = LEAD_S, ids: Sequence[str] = ()) -> dict[str, Late]:
    """By clip, of one split or of the clips named."""
    clip_set = load_set(verify=False)
    found = {
        clip.id: late_of(clip, seed, lead_s)
        for seed, clip in enumerate(clip_set.clips)
        if (clip.id in ids if ids else split_of(clip, clip_set) == split)
    }
    return {name: late for name, late in found.items() if late is not None}


def median_of(found: dict[str, Late]) -> Late:
    first, second = np.median(list(found.values()), axis=0)
    return float(first), float(second)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--split", choices=("tune", "test"), default=TUNED)
    options = parser.parse_args(argv)
    for title, lead_s in (("as it is", 0.0), (f"driven {LEAD_S * 1000:.0f} ms late", LEAD_S)):
        found = lates(options.split, lead_s)
        phones, sound = median_of(found)
        within = [sum(abs(v[i]) <= 1 for v in found.values()) for i in (0, 1)]
        print(  # noqa: T201
            f"{title}: {len(found)} clips, median {phones:+.2f} frames by the phones "
            f"({within[0]} within one), {sound:+.2f} by the second opinion ({within[1]}): "
            f"LEAD_S = {lead_s - (phones + sound) / 2 / FPS:.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
