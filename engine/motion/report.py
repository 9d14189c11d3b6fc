"""Figures of the whole audio half on clips with exact phone times, as JSON.

`python -m engine.motion.report FOLDER`: every NAME.wav of the folder that has a NAME.phones beside
it (what `flite -psdur -voice V -t TEXT -o NAME.wav` prints). Knows nothing of pictures.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from engine.errors import EngineError
from engine.motion.clip import motion_of, sound
from engine.motion.measure import Figures, measure, pooled
from engine.motion.phone_track import read_phones


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
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    try:
        found = figures_of(options.folder, options.seed)
    except EngineError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_status
    clips = {name: asdict(figures) for name, figures in found.items()}
    print(json.dumps({"pooled": pooled(list(found.values())), "clips": clips}, indent=1))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
