"""Answers of `avatar-qa`, here a small program that says what the real one says."""

from __future__ import annotations

import sys
from pathlib import Path

from studio.qa_answers import QaAnswers
from studio.qa_runs import Side

SAYS = (
    "import sys\n"
    "print('INFO: something of a library', file=sys.stderr)\n"
    "print('pictures of 8 of 53 clips, about 9 s left', file=sys.stderr)\n"
    'print(\'{"page": "/tmp/a page.html", "clips": 53}\')\n'
)


def test_a_report_says_how_far_it_is_and_nothing_else(qtbot):
    answers = QaAnswers([sys.executable, "-c", SAYS])
    said: list[str] = []
    pages: list[Path] = []
    answers.report_said.connect(said.append)
    answers.reported.connect(pages.append)
    assert answers.report(Side(Path("/tmp/run"), "portrait", [], True), None)
    qtbot.waitUntil(lambda: bool(pages), timeout=20_000)
    assert pages == [Path("/tmp/a page.html")]
    assert said == ["pictures of 8 of 53 clips, about 9 s left"]
