"""The lip-sync quality window: a run fills its table, clips are looked at, runs are compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine.portrait.face_model import DETECTOR, default_folder
from engine.qa.limits import make_score
from engine.qa.report import ClipResult, Comparison
from studio import theme
from studio.panels.quality import QualityWindow
from studio.panels.quality_table import AGAINST, RESULT
from studio.qa_process import qa_command
from tests.studio_ui.quality_runs import FRAMES, LENGTH_S, level, make_run, result, write_film
from tests.studio_ui.test_actions import controls

WAIT_MS = 30_000  # a child that imports numpy on a busy machine; nothing is timed
# Stands for `avatar-qa run`: does what it is told to with results made by hand.
CHILD = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.studio_ui.quality_runs import make_run
out = Path(sys.argv[sys.argv.index("--out") + 1])
again = (out / "run.json").is_file()
run = make_run(out, {{"a": 0.9, "b": 0.3 if again else None}}, film=False)
print("1 of 2, 3.0 a minute, 20 s left: portrait seed 1 a: 0.90", file=sys.stderr, flush=True)
if not again:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make(show_quality, qtbot, tmp_path):
    """A shown window on a folder of runs; ended after the test."""
    return lambda command=None: show_quality(tmp_path / "runs", command)


@pytest.fixture
def two_runs(tmp_path):
    """A worse by much in A than in B, and B has one that failed; the newest is listed first."""
    make_run(tmp_path / "runs" / "Plain", {"a": 0.2, "b": 0.3, "c": 0.25}, "loudness", blue=True)
    run = make_run(tmp_path / "runs" / "Best", {"a": 0.8, "b": 0.9, "c": "no face in frame 3"})
    (run.path / "run.json").touch()


def cells(window: QualityWindow, column: int) -> list[str]:
    table = window.table.sorted
    return [table.index(row, column).data() for row in range(table.rowCount())]


def pick(window: QualityWindow, name: str) -> None:
    """Choose a run of the list as a person does."""
    for row in range(window.list.count()):
        if window.list.item(row).data(Qt.ItemDataRole.UserRole).name == name:
            window.list.setCurrentRow(row)
            return
    raise AssertionError(name)


def baseline(window: QualityWindow, name: str) -> None:
    at = window.head.against.findText(name)
    assert at > 0
    window.head.against.setCurrentIndex(at)
    window.head.against.activated.emit(at)


# --- empty ---
def test_an_empty_window_says_what_to_do(make, tmp_path):
    window = make()
    assert window.head.title.text() == "No run yet" and "Start one" in window.head.words.text()
    assert not window.head.report.isEnabled() and not window.player.play.isEnabled()
    assert window.setup.count.text().startswith("53 clips")
    assert not (tmp_path / "runs").exists(), "nothing is made before a run is started"


def test_every_control_has_name_and_tooltip(make, two_runs):
    window = make()
    found = controls(window)
    assert len(found) > 15
    assert not [repr(w) for w in found if not w.accessibleName()]
    assert not [repr(w) for w in found if not w.toolTip() and w is not window.tabs.bar]


# --- the form ---
def test_the_form_says_what_the_command_needs(make):
    setup = make().setup
    assert setup.arguments() == ["--model", "portrait", "--drive", "audio", "--seeds", "1"]
    setup.drive.setCurrentIndex(setup.drive.findData("loudness"))
    setup.seeds.setCurrentIndex(1)
    setup.split.setCurrentIndex(setup.split.findData("test"))
    setup.split.activated.emit(setup.split.currentIndex())
    setup.language.setCurrentIndex(setup.language.findData("cs"))
    chosen = setup.chosen()
    wanted = [c.id for c in setup.clips.matching("test", "cs", "")]
    assert chosen == wanted and 0 < len(wanted) < 53
    assert setup.arguments()[:6] == ["--model", "portrait", "--drive", "loudness",
                                     "--seeds", "1,2,3"]  # fmt: skip
    assert setup.arguments()[6:] == ["--only", *wanted]
    setup.list.item(0).setCheckState(Qt.CheckState.Unchecked)
    assert setup.chosen() == wanted[1:] and f"{len(wanted) - 1} clips" in setup.count.text()
    for row in range(setup.list.count()):
        setup.list.item(row).setCheckState(Qt.CheckState.Unchecked)
    assert not setup.start.isEnabled()


def test_a_folder_of_ones_own(make, tmp_path):
    setup = make().setup
    setup.use_folder(tmp_path)
    assert setup.arguments()[-4:] == ["--clips", str(tmp_path), "--character", "lisar"]
    setup.use_folder(None)
    assert "--clips" not in setup.arguments()


# --- a run ---
def test_a_run_starts_fills_stops_and_is_resumed(make, qtbot):
    window = make([sys.executable, "-c", CHILD.format(root=str(ROOT))])
    window.setup.name.setText("Quick look")
    window.setup.start.click()
    assert window.head.cancel.isVisible() and not window.setup.start.isEnabled()
    qtbot.waitUntil(lambda: "3 a minute" in window.head.pace.text(), timeout=WAIT_MS)
    qtbot.waitUntil(lambda: cells(window, RESULT)[:1] != [], timeout=WAIT_MS)
    assert window.head.pace.text() == "Quick look: 1 of 2 clips · 3 a minute · 20 s left"
    assert (window.head.progress.value(), window.head.progress.maximum()) == (1, 2)
    assert cells(window, 2) == ["0.90", "–"] and cells(window, RESULT) == ["p b m", "Waiting"]
    window.head.cancel.click()
    qtbot.waitUntil(lambda: not window.run_process.is_running, timeout=WAIT_MS)
    assert "Stopped" in window.head.note.text.text() and window.head.resume.isVisible()
    window.head.resume.click()
    qtbot.waitUntil(lambda: not window.run_process.is_running, timeout=WAIT_MS)
    assert sorted(cells(window, 2)) == ["0.30", "0.90"] and not window.head.resume.isVisible()
    assert window.head.words.text() == "Lips fit the sound in 1 of 2 clips"
    assert "0.60" in window.list.item(0).text()


def test_a_run_that_cannot_start_says_why(make, qtbot):
    code = "import sys; sys.stderr.write('avatar-qa: set.json is missing: reinstall'); sys.exit(2)"
    window = make([sys.executable, "-c", code])
    window.setup.start.click()
    qtbot.waitUntil(lambda: not window.run_process.is_running, timeout=WAIT_MS)
    assert window.head.note.text.text() == "set.json is missing: reinstall"
    assert window.setup.start.isEnabled()


def test_runs_are_remembered_and_the_worst_is_first(make, two_runs):
    window = make()
    assert [window.list.item(i).text() for i in range(2)] == ["Best  ·  0.85", "Plain  ·  0.25"]
    assert cells(window, 0) == ["c", "a", "b"]
    assert cells(window, RESULT) == ["Failed: no face in frame 3", "p b m", "p b m"]
    assert cells(window, 3) == ["–", "-0.5", "-0.5"]
    pick(window, "Plain")
    assert cells(window, 2) == ["0.20", "0.25", "0.30"]
    assert window.head.title.text() == "Plain"


def test_a_run_made_elsewhere_is_opened_and_remembered(make, two_runs, tmp_path):
    window = make()
    make_run(tmp_path / "elsewhere" / "Nightly", {"a": 0.5}, film=False)
    window.open_run(tmp_path / "elsewhere" / "Nightly")
    assert window.head.title.text() == "Nightly" and window.list.count() == 3
    window.open_run(tmp_path)
    assert "holds no run" in window.head.note.text.text() and window.list.count() == 3
    assert make().list.count() == 3


# --- a clip ---
def grey(window: QualityWindow, x_share: float) -> tuple[int, int]:
    """(red, blue) in the middle of the picture at that share of its width."""
    image = window.player.pictures.grab().toImage()
    pixel = image.pixelColor(int(image.width() * x_share), image.height() // 2)
    return pixel.red(), pixel.blue()


def test_a_clip_is_stepped_frame_by_frame(make, two_runs, qtbot):
    window = make()
    window.table.select_clip("a")
    player = window.player
    qtbot.waitUntil(lambda: not player.is_loading, timeout=WAIT_MS)
    assert abs(grey(window, 0.5)[0] - level(0)) <= 3
    player.timeline.setFocus()
    for _ in range(3):
        QTest.keyClick(player.timeline, Qt.Key.Key_Right)
    QTest.keyClick(player.timeline, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert "frame 13" in player.clock.text() and abs(grey(window, 0.5)[0] - level(13)) <= 3
    assert player.pictures.panes[0].phone == "AA" and player.pictures.panes[0].seen == 1.0
    QTest.keyClick(player.timeline, Qt.Key.Key_Left)
    assert abs(grey(window, 0.5)[0] - level(12)) <= 3
    QTest.keyClick(player.timeline, Qt.Key.Key_End)
    assert abs(grey(window, 0.5)[0] - level(FRAMES - 1)) <= 3


def test_the_timeline_draws_sound_phones_and_mouth(make, two_runs, qtbot):
    window = make()
    window.table.select_clip("a")
    timeline = window.player.timeline
    qtbot.waitUntil(lambda: not window.player.is_loading, timeout=WAIT_MS)
    image = timeline.grab().toImage()

    def names(seconds: float, top: int, bottom: int) -> set[str]:
        x = round(timeline.x_of(seconds))
        return {image.pixelColor(x, y).name() for y in range(top, bottom)}

    def reddish(seconds: float, y: int) -> bool:
        pixel = image.pixelColor(round(timeline.x_of(seconds)), y)
        return pixel.red() > pixel.green() + 10

    accent, raised = theme.COLORS["accent"], theme.COLORS["raised"]
    assert reddish(0.12, 54) and raised in names(0.8, 48, 68), "M is marked, AA is not"
    plot = timeline._plot
    high, low = round(plot.top()), round(plot.bottom())
    assert accent in names(0.7, high - 3, high + 4) and accent not in names(0.7, low - 4, low + 3)
    assert accent in names(0.25, low - 4, low + 3), "shut in M"
    assert reddish(1.98, high + 30) and not reddish(0.9, high + 30), "the worst second is shaded"
    QTest.mouseClick(timeline, Qt.MouseButton.LeftButton, pos=timeline.rect().center())
    assert window.player.playback.seconds == pytest.approx(LENGTH_S / 2, abs=0.01)


def test_the_worst_second_goes_round(make, two_runs, qtbot):
    window = make()
    window.table.select_clip("a")
    player = window.player
    player.loop.click()
    assert player.playback.loop == (48_000, 96_000) and player.playback.is_playing
    player.playback.toggle()
    window.table.select_clip("b")
    assert player.playback.loop is None and not player.loop.isChecked()


def test_a_clip_that_was_rendered_anew_is_read_anew(make, two_runs, qtbot, monkeypatch):
    window = make()
    window.table.select_clip("a")
    qtbot.waitUntil(lambda: not window.player.is_loading, timeout=WAIT_MS)
    asked: list[list[str]] = []
    monkeypatch.setattr(window.run_process, "start", lambda arguments: asked.append(arguments))
    window.head.retry.click()
    assert asked[0][0] == "run" and asked[0][-3:] == ["--again", "portrait/seed1/a", "--json"]
    assert asked[0][asked[0].index("--only") + 1 :][:3] == ["a", "b", "c"]
    assert window.player.b is not None
    write_film(window.player.b.video, blue=True)
    window._on_run_ended(0, "", "")
    qtbot.waitUntil(lambda: not window.player.is_loading, timeout=WAIT_MS)
    assert window.table.current is not None and window.table.current.clip == "a"
    assert grey(window, 0.5)[1] > 180, "the new film is blue"


def test_a_failed_clip_is_no_end(make, two_runs):
    window = make()
    window.table.select_clip("c")
    assert not window.player.loop.isEnabled() and window.player.pictures.panes
    assert window.player.timeline.failed == "no face in frame 3"
    window.table.select_clip("a")
    assert window.player.timeline.failed == ""


def test_the_reason_of_a_failed_clip_takes_the_place_of_its_scores(make, two_runs):
    """It follows the row, however the table is sorted."""
    window = make()
    table = window.table
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        table.sortByColumn(0, order)
        at = cells(window, 0).index("c")
        assert cells(window, 2)[at] == "Failed: no face in frame 3"
        spans = [table.columnSpan(row, 2) for row in range(3)]
        assert spans[at] == RESULT - 1 and spans.count(1) == 2


def test_a_clip_without_words_is_not_called_good(make, tmp_path):
    make_run(tmp_path / "runs" / "Own", {"a": 0.9}, film=False)
    path = next((tmp_path / "runs" / "Own" / "results").rglob("a.json"))
    old = msgspec.json.decode(path.read_bytes(), type=ClipResult)
    scores = [make_score("headline", None, 0, "no text"), make_score("repeated", 0.0)]
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(old, scores=scores)))
    window = make()
    assert cells(window, RESULT) == ["Not judged"]
    assert window.head.words.text() == "No transcript: lips were not judged"


# --- A against B ---
def test_a_and_b_show_the_same_moment(make, two_runs, qtbot):
    window = make()
    window.table.select_clip("a")
    baseline(window, "Plain")
    player = window.player
    qtbot.waitUntil(lambda: not player.is_loading, timeout=WAIT_MS)
    player.playback.seek(20 / 24)
    (a_red, a_blue), (b_red, b_blue) = grey(window, 0.25), grey(window, 0.75)
    assert abs(a_red - level(20)) <= 12 and a_blue > 180, "A is the blue film"
    assert abs(b_red - level(20)) <= 3 and abs(b_blue - level(20)) <= 3
    player.ab.click()
    assert [p.side for p in player.pictures.panes] == ["A"] and player.ab.text() == "Only A"
    player.ab.click()
    assert [p.side for p in player.pictures.panes] == ["B"]
    assert not window.table.isColumnHidden(AGAINST)
    wide = window.table.fontMetrics().horizontalAdvance("+0.60") + 24  # the style's padding
    assert window.table.columnWidth(AGAINST) >= wide
    assert cells(window, AGAINST) == ["–", "+0.60", "+0.60"]


def test_the_verdict_is_the_headless_one(make, qtbot, monkeypatch, tmp_path):
    """The real command, asked by the window and by hand; then its report."""
    for name, base in (("Best", 0.8), ("Plain", 0.2)):
        values = {clip: base + 0.01 * i for i, clip in enumerate("abcdef")}
        make_run(tmp_path / "runs" / name, values, name.lower(), film=False)
    window = make()
    pick(window, "Plain")
    baseline(window, "Best")
    qtbot.waitUntil(lambda: not window.answers.process.is_running, timeout=WAIT_MS)
    assert window.comparison.head.text() == "Worse: Plain against Best"
    runs = tmp_path / "runs"
    done = subprocess.run(
        [*qa_command(), "compare", str(runs / "Best"), str(runs / "Plain"), "--json"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    found = msgspec.json.decode(done.stdout, type=Comparison)
    texts = {w.text() for w in window.comparison.table.findChildren(QLabel)}
    assert {f"{d.mean:+.3f}" for d in found.differences} <= texts
    assert found.words.replace("headline", "score")[1:] in window.comparison.words.text()
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    window.head.report.click()
    qtbot.waitUntil(lambda: bool(opened), timeout=WAIT_MS)
    page = Path(opened[0]).read_text(encoding="utf-8")
    assert "plain against best" in page
    window.comparison.clip_chosen.emit("a")
    assert window.table.current is not None and window.table.current.clip == "a"
    assert window.tabs.pages.currentWidget() is window.table


def test_a_run_without_results_is_not_compared(make, two_runs, tmp_path):
    make_run(tmp_path / "runs" / "New", {"a": None}, film=False)
    window = make()
    pick(window, "Best")
    baseline(window, "Plain")
    pick(window, "New")
    assert "nothing to compare yet" in window.comparison.words.text()


def test_runs_of_different_rulers_are_not_compared(make, two_runs, qtbot, tmp_path):
    path = next((tmp_path / "runs" / "Plain" / "results").rglob("a.json"))
    for file in path.parent.glob("*.json"):
        old = msgspec.json.decode(file.read_bytes(), type=ClipResult)
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(old, scorer="other")))
    run = json.loads((tmp_path / "runs" / "Plain" / "run.json").read_text())
    run["jobs"] = [{**job, "scorer": "other"} for job in run["jobs"]]
    (tmp_path / "runs" / "Plain" / "run.json").write_text(json.dumps(run))
    window = make()
    pick(window, "Best")
    baseline(window, "Plain")
    qtbot.waitUntil(lambda: not window.answers.process.is_running, timeout=WAIT_MS)
    assert "different scorers" in window.comparison.words.text()
    assert window.comparison.table.isHidden()


# --- the studio ---
def test_the_studio_opens_it_once_and_ends_it(app, tmp_path, qtbot):
    app.settings.set("quality_folder", str(tmp_path / "kept"))
    app.window.action("quality").trigger()
    first = app.quality.window
    assert first is not None and first.isVisible() and first.runs == tmp_path / "kept"
    first.close()
    app.window.action("quality").trigger()
    assert app.quality.window is first and first.isVisible()
    said = []
    app.flow.choose_file = lambda path: said.append(path)
    mira = ROOT / "assets" / "characters" / "mira.avatar"
    first.character_wanted.emit(mira, tmp_path / "voice.flac")
    assert said == [tmp_path / "voice.flac"]
    app.shut_down()
    assert app.quality.window is None


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(
    not (default_folder() / DETECTOR).is_file(), reason="run python packaging/face_model.py"
)
def test_a_real_clip_is_rendered_scored_and_played(make, qtbot):
    window = make()
    shortest = min(window.setup.clips.clips, key=lambda clip: clip.samples).id
    window.setup._tick({shortest})
    window.setup.start.click()
    qtbot.waitUntil(lambda: not window.run_process.is_running, timeout=200_000)
    assert window.head.note.text.text() == "" and cells(window, 0) == [shortest]
    assert window.side is not None and window.side.is_complete
    scored = window.side.refresh()[shortest, 1]
    assert not scored.failed and cells(window, 2) == [f"{scored.value('headline'):.2f}"]
    window.table.selectRow(0)
    qtbot.waitUntil(lambda: not window.player.is_loading, timeout=WAIT_MS)
    assert window.player.pictures.panes[0].image is not None
    assert result(shortest, 0.5, "x").format == scored.format
