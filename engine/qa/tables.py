"""The figures of a run for machines: CSV (bytes equal for equal input), JSON and JUnit.

Timings are left out of the CSV, so that a rerun of the same input gives the same bytes. Knows
nothing of pages or pictures.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import msgspec

from engine.qa.limits import RULES
from engine.qa.report import ClipResult

ABOUT = (
    "clip", "configuration", "seed", "scorer", "character", "language", "split", "frames", "fps",
    "duration_s", "measure", "range_source", "failed",
)  # fmt: skip


def csv_text(results: Sequence[ClipResult]) -> str:
    """A row a clip, in order of clip, configuration and seed; a score without a value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*ABOUT, *RULES])
    for result in sorted(results, key=lambda r: (r.clip, r.configuration, r.seed)):
        values = [result.value(name) for name in RULES]
        about = [getattr(result, name) for name in ABOUT]
        writer.writerow([*about, *("" if v is None else repr(v) for v in values)])
    return out.getvalue()


def json_bytes(results: Sequence[ClipResult]) -> bytes:
    """Everything, timings too."""
    return msgspec.json.format(msgspec.json.encode(list(results)), indent=1) + b"\n"


def junit_text(results: Sequence[ClipResult]) -> str:
    """A test case a clip: an error where it was not scored, a failure where a score misses."""
    cases = [_case(result) for result in results]
    errors = sum(bool(r.failed) for r in results)
    failures = sum(bool(_missed(r)) and not r.failed for r in results)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuite name="lip-sync" tests="{len(cases)}" failures="{failures}" '
        f'errors="{errors}">\n{"".join(cases)}</testsuite>\n'
    )


def _case(result: ClipResult) -> str:
    name = quoteattr(result.clip + (f" seed {result.seed}" if result.seed else ""))
    head = f"  <testcase classname={quoteattr(result.configuration or 'run')} name={name}"
    if result.failed:
        return f"{head}><error message={quoteattr(result.failed)}/></testcase>\n"
    missed = _missed(result)
    if missed:
        return f"{head}><failure>{escape('; '.join(missed))}</failure></testcase>\n"
    return f"{head}/>\n"


def _missed(result: ClipResult) -> list[str]:
    return [
        f"{s.name} {s.value:g} outside {s.low} to {s.high}"
        for s in result.scores
        if s.passed is False and s.value is not None
    ]


def write_tables(folder: Path, results: Sequence[ClipResult], junit: bool = False) -> None:
    """results.csv, results.json and, if asked, junit.xml in `folder`."""
    (folder / "results.csv").write_text(csv_text(results), encoding="utf-8")
    (folder / "results.json").write_bytes(json_bytes(results))
    if junit:
        (folder / "junit.xml").write_text(junit_text(results), encoding="utf-8")
