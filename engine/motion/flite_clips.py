"""Spoken clips with exact phone times, made by the flite program where it is installed.

The sentences were written for this project, full of closures, f and v, and rounded vowels. Knows
nothing of what is measured.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from engine.errors import EngineError

SENTENCES = Path(__file__).resolve().parents[2] / "assets" / "motion" / "sentences.txt"


def make_clips(folder: Path, voices: list[str]) -> int:
    """Write VOICE-NN.wav and VOICE-NN.phones for every sentence; returns how many.

    Raises EngineError("missing_asset") without flite, ("bad_input") for a voice it does not have.
    """
    flite = shutil.which("flite")
    if flite is None:
        raise EngineError("missing_asset", "the program flite is missing", "apt install flite")
    known = subprocess.run([flite, "-lv"], capture_output=True, text=True, check=True, timeout=30)
    available = known.stdout.partition(":")[2].split()
    folder.mkdir(parents=True, exist_ok=True)
    sentences = SENTENCES.read_text("utf-8").splitlines()
    for voice in voices:
        if voice not in available:
            raise EngineError("bad_input", f"flite has no voice {voice!r}", f"of {available}")
        for number, sentence in enumerate(sentences):
            wav = folder / f"{voice}-{number:02d}.wav"
            command = [flite, "-voice", voice, "-psdur", "-t", sentence, "-o", str(wav)]
            said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            wav.with_suffix(".phones").write_text(said.stdout, "utf-8")
    return len(voices) * len(sentences)
