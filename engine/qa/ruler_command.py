"""The `ruler` part of `avatar-qa`: why believe this ruler? The newest validation of it, in words.

0 it measures, 1 it fell short, was measured with another ruler or not at all, 2 bad input.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from engine.errors import EngineError
from engine.qa.clip_set import ASSETS_QA, load_set
from engine.qa.report_ruler import (
    SHIPPED,
    Ruler,
    Standing,
    choose,
    circumstances,
    fault_words,
    found_words,
    headline,
    mean_headline,
    planted_words,
    short_of,
    splits,
    verdict_words,
)
from engine.qa.run_folder import read_run
from engine.qa.scorer import scorer_hash


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="of this run's folder")
    parser.add_argument("--validation", type=Path, help="validation.json of `avatar-qa validate`")
    parser.add_argument("--models", type=Path, help="folder of the face models")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Raises EngineError."""
    folder = Path(arguments.run) if arguments.run else None
    found = ruler_of(folder, arguments.validation, arguments.models)
    text = msgspec.json.encode(found).decode() if arguments.json else "\n".join(said(found))
    print(text)  # noqa: T201
    believed = found.standing in (Standing.SAME, Standing.CLIPS)
    return 0 if believed and found.measures else 1


def ruler_of(folder: Path | None, given: Path | None = None, models: Path | None = None) -> Ruler:
    """The validation that fits a run best (None: this version of the tool and the shipped set):
    the one given, the run's own `validation.json`, or the one that ships.

    Raises EngineError("bad_input") for a folder without a run, or a file without a validation.
    """
    here = _scorer(load_set(ASSETS_QA, verify=False).hash, models)
    same, code = [here], [here]
    if folder is not None:
        old = read_run(folder)
        same = [old.scorer]
        # The set is part of the hash: with a person's own clips only the code can be the same.
        code = [here] if old.scorer == _scorer(old.set_hash, models) else []
    places = [p for p in (given, folder / "validation.json" if folder else None, SHIPPED) if p]
    found = choose(places if given is None else [given], same, code)
    if given is not None and found.validation is None:
        raise EngineError("bad_input", f"{given} holds no validation", "give validation.json")
    return found


def _scorer(set_hash: str, models: Path | None) -> str:
    """Empty on a machine without the face models: a report can be written there all the same."""
    try:
        return scorer_hash(set_hash, models)
    except EngineError:
        return ""


def said(found: Ruler) -> list[str]:
    """Lines for a terminal: the sentence, what fell short, the table."""
    validation = found.validation
    if validation is None:
        return [f"{found.said}."]
    lines = [headline(validation), f"{found.said}.", circumstances(validation), *validation.notes]
    lines += [f"FAIL {c.name}: {c.said}" for c in short_of(validation.checks) if not c.passed]
    for split, rows in splits(validation):
        lines += ["", f"{split:<36}planted  found  within 1  headline  verdict"]
        for row in rows:
            offset, within = found_words(row)
            mean = mean_headline(row)
            value = "–" if mean is None else f"{mean:.2f}"
            lines.append(
                f"{fault_words(row.fault):<36}{planted_words(row):>7}  {offset:>5}  {within:>8}  "
                f"{value:>8}  {verdict_words(row)}"
            )
    return lines
