"""Why believe this ruler? The window's third tab, answered by the real command."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from engine.qa.report import Check, PlantedRow, Validation, Verdict
from studio import theme
from studio.panels.quality import QualityWindow
from studio.panels.quality_layout import RULER
from studio.panels.quality_ruler import ScoreBar
from studio.qa_ruler import QaRuler
from tests.studio_ui.quality_runs import SCORER, make_run

WAIT_MS = 30_000


def validation(scorer: str, passed: bool = True) -> Validation:
    def row(fault: str, late: float | None, found: float | None, verdict: Verdict) -> PlantedRow:
        return PlantedRow(fault, "test", 9, late, found, 9, found, 9, {"headline": 0.25}, 1.0,
                          verdict)  # fmt: skip

    rows = [
        row("reference", 0.0, 0.1, Verdict.SAME), row("late -3", -3.0, -2.9, Verdict.WORSE),
        row("frozen shut", None, None, Verdict.UNDECIDED),
    ]  # fmt: skip
    checks = [
        Check("same twice", True, "yes"),
        Check("late -3 is worse", True, "in the table"),
        Check("frozen is worse", passed, "0.25 of 0.8"),
    ]
    return Validation(scorer, False, rows, checks, [], [])


@pytest.fixture
def window(show_quality, qtbot, tmp_path):
    run = make_run(tmp_path / "runs" / "Best", {"a": 0.8, "b": 0.9}, film=False)
    path = run.path / "validation.json"
    path.write_bytes(msgspec.json.encode(validation(SCORER, passed=False)))
    return show_quality(tmp_path / "runs")


def texts(window: QualityWindow) -> list[str]:
    return [w.text() for w in window.ruler.body.findChildren(QLabel) if w.isVisibleTo(window.ruler)]


def wait(window: QualityWindow, qtbot) -> None:
    qtbot.waitUntil(lambda: not window.belief.process.is_running, timeout=WAIT_MS)
    QApplication.processEvents()


def test_it_shows_what_was_planted_and_found(window, qtbot):
    assert not window.belief.process.is_running, "nobody looks yet"
    window.tabs.bar.setCurrentIndex(RULER)
    wait(window, qtbot)
    assert window.ruler.head.text() == "The ruler falls short in 1 of 3 checks."
    assert window.ruler.head.property("tone") == "danger"
    assert window.ruler.words.text().startswith("Measured with this very ruler.")
    shown = texts(window)
    at = shown.index("mouth 3 frames early")
    assert shown[at + 1 : at + 5] == ["-3", "-2.90", "9 of 9", "worse"]
    assert "missed: undecided" in shown, "a frozen mouth that was not called worse"
    assert shown.index("frozen is worse: 0.25 of 0.8") < at < shown.index("same twice: yes")
    assert not [text for text in shown if "in the table" in text]
    bar = window.ruler.body.findChildren(ScoreBar)[0].grab().toImage()
    accent = theme.COLORS["accent"]
    row = [bar.pixelColor(x, bar.height() // 2).name() for x in range(bar.width())]
    assert row[bar.width() * 45 // 96] == accent and row[bar.width() * 80 // 96] != accent


def test_each_run_is_asked_once_and_another_ruler_is_called_so(window, qtbot, tmp_path):
    window.tabs.bar.setCurrentIndex(RULER)
    wait(window, qtbot)
    window.tabs.bar.setCurrentIndex(0)
    window.tabs.bar.setCurrentIndex(RULER)
    assert not window.belief.process.is_running and window.ruler.head.isVisible()
    other = tmp_path / "other.json"
    other.write_bytes(msgspec.json.encode(validation("f" * 16)))
    window._ask_ruler(other)
    wait(window, qtbot)
    assert window.ruler.head.property("tone") == "warning"
    assert "Measured with another ruler (ffffffffffffffff)" in window.ruler.words.text()


def test_a_file_that_is_no_validation_is_refused_in_words(window, qtbot, tmp_path, monkeypatch):
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(bad), ""))
    window.tabs.bar.setCurrentIndex(RULER)
    wait(window, qtbot)
    window.ruler.other.click()
    wait(window, qtbot)
    assert "holds no validation" in window.ruler.words.text() and window.ruler.head.isHidden()


def test_only_the_last_question_is_answered(qtbot):
    code = "import json, sys\nprint(json.dumps({'standing': 'not checked', 'source': sys.argv[2]}))"
    asks = QaRuler([sys.executable, "-c", code])
    heard = []
    asks.answered.connect(lambda ruler: heard.append(ruler.source))
    for name in "abc":
        asks.ask(Path(name))
    qtbot.waitUntil(lambda: heard != [], timeout=WAIT_MS)
    assert heard == ["c"] and not asks.process.is_running
    asks.ask(Path("c"))
    assert heard == ["c", "c"], "known already"
