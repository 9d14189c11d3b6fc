"""The `compare` part of `avatar-qa`: is B worse than A by more than chance and rerun noise?

A and B are folders of runs, or FOLDER:CONFIGURATION where a run holds several. 0 no worse, 1 worse
or undecided, 2 bad input. Knows nothing of how clips are scored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from engine.errors import EngineError
from engine.qa.compare import compare
from engine.qa.report import ClipResult, Comparison
from engine.qa.run_folder import RunFolder


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the run to compare with: FOLDER[:CONFIGURATION]")
    parser.add_argument("b", metavar="B", help="the run that may be worse")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def side(name: str) -> tuple[list[ClipResult], dict[str, float]]:
    """(results of one configuration, the set's margins). Raises EngineError("bad_input")."""
    folder, configuration = name, ""
    if not Path(name).is_dir() and ":" in name:
        folder, _, configuration = name.rpartition(":")
    run = RunFolder.existing(Path(folder))
    results = run.results()
    known = sorted({r.configuration for r in results})
    if not results:
        raise EngineError("bad_input", f"{folder} holds no result yet", "finish the run first")
    if not configuration and len(known) > 1:
        raise EngineError(
            "bad_input", f"{folder} holds {len(known)} configurations ({', '.join(known)})",
            f"name one, as {folder}:{known[0]}",
        )  # fmt: skip
    chosen = configuration or known[0]
    if chosen not in known:
        raise EngineError(
            "bad_input", f"{folder} has no configuration {chosen!r}", f"of {', '.join(known)}"
        )
    return [r for r in results if r.configuration == chosen], run.run.margins


def run(arguments: argparse.Namespace) -> int:
    """Raises EngineError."""
    (a, margins), (b, _) = side(arguments.a), side(arguments.b)
    found = compare(a, b, margins)
    text = msgspec.json.encode(found).decode() if arguments.json else "\n".join(said(found))
    print(text)  # noqa: T201
    return found.exit_status


def said(found: Comparison) -> list[str]:
    """The verdict, then a line a score: the mean difference with + = B better."""
    lines = [found.words]
    for d in found.differences:
        needed = f": {text}" if (text := d.to_decide) else ""
        lines.append(
            f"{d.name:<12} {d.mean:+8.3f}  95 % {d.low95:+.3f} to {d.high95:+.3f}  "
            f"margin {d.margin:g}  band {d.band:.3f}  {d.verdict.value}{needed}"
        )
    return lines + [f"failed: {line}" for line in found.failed]
