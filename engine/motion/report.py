"""Figures of the whole audio half on clips with exact phone times, as JSON.

`python -m engine.motion.report FOLDER`: every NAME.wav of the folder that has a NAME.phones beside
it (what `flite -psdur -t TEXT -o NAME.wav` prints); `--flite slt awb` first makes 40 for each
voice. Knows nothing of pictures.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from engine.bench import machine
from engine.errors import EngineError
from engine.motion.clip import motion_of, sound
from engine.motion.flite_clips import make_clips
from engine.motion.measure import Figures, measure, pooled
from engine.motion.phone_track import read_phones
from engine.speech.encoder import SpeechEncoder


def figures_of(folder: Path, seed: int) -> dict[str, Figures]:
    """Clip name -> figures. Raises EngineError when there is no clip."""
    clips = [(w, w.with_suffix(".phones")) for w in sorted(folder.glob("*.wav"))]
    clips = [(wav, phones) for wav, phones in clips if phones.is_file()]
    if not clips:
        raise EngineError("bad_input", f"no NAME.wav with NAME.phones in {folder}", "see --help")
    return {
        wav.stem: measure(motion_of(sound(wav), {"seed": seed})[0], read_phones(phones))
        for wav, phones in clips
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.motion.report", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", action="store_true", help="figures of each clip too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flite", nargs="+", metavar="VOICE", default=[])
    options = parser.parse_args(argv)
    try:
        if options.flite:
            make_clips(options.folder, options.flite)
        found = figures_of(options.folder, options.seed)
    except EngineError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_status
    told = {
        **machine(),
        "command": " ".join(("python -m engine.motion.report", *argv)),
        "encoder": SpeechEncoder().notes,
        "clips": len(found),
        "pooled": pooled(list(found.values())),
    }
    if options.clips:
        told["by_clip"] = {name: asdict(figures) for name, figures in found.items()}
    print(json.dumps(told, indent=1))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
