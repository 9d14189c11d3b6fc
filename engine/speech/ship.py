"""Puts the seed that is best on the dev voices into assets, with where it comes from written in.

`python -m engine.speech.ship --reports A.json B.json --weights DIR --out FILE.safetensors`
Knows nothing of how seeds were trained or scored.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.numpy import save_file

SOURCES = (
    "LibriSpeech train-clean-100, one clip each of 202 readers (CC-BY 4.0); asterisk prompts "
    "en es fr (CC-BY-SA 3.0) and it (CC-BY 3.0); fillets-ng dialogues cs (GPL-2+); synthesised: "
    "festival voices ked lp pc dita krb machac ph suo_fi_lj hy_fi_mv upc_ca_ona, flite kal16, "
    "espeak-ng variants, hibari-tts, Kokoro-82M blends; noise: wesnoth and supertux music and "
    "sounds, sonic-pi samples"
)


def best_run(reports: list[Path]) -> tuple[dict[str, Any], dict[str, float]]:
    """The run of the highest merit, and every run's merit."""
    runs = [run for path in reports for run in json.loads(path.read_text())["runs"]]
    merits = {f"seed {run['notes']['seed']}": round(run["merit"], 4) for run in runs}
    return max(runs, key=lambda run: run["merit"]), merits


def ship(weights: Path, notes: dict[str, str], out: Path) -> None:
    """Copies arrays as they are, adds notes to the metadata."""
    with safe_open(weights, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        metadata = dict(file.metadata() or {})
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(arrays, out, metadata=metadata | notes)
    out.chmod(0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=Path, nargs="+", required=True)
    parser.add_argument("--weights", type=Path, required=True, help="folder of speech-seedN files")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    run, merits = best_run(given.reports)
    path = given.weights / f"speech-seed{run['notes']['seed']}.safetensors"
    notes = {
        "lip_factor": str(run["factor"]),
        "merits_on_dev_voices": json.dumps(merits),
        "trained_on": SOURCES,
        "held_out": "rms slt awb, LibriSpeech test-other, LibriVox, ru",
    }
    ship(path, notes, given.out)
    sys.stdout.write(f"{path.name} -> {given.out}, merits {merits}\n")


if __name__ == "__main__":
    main()
