"""The lip-sync quality window: start a run, watch its table fill, look at clips, compare two runs.

Every number comes from `avatar-qa` as a child process and the files that it writes: headless and
here they are the same. Lays out and connects; the parts know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QTimer, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDesktopServices, QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.errors import EngineError
from engine.qa.report import Comparison
from studio.panels.quality_comparison import EMPTY
from studio.panels.quality_head import START
from studio.panels.quality_layout import CLIPS, RULER, QualityLayout
from studio.panels.quality_player import Shown
from studio.panels.quality_ruler import ASKING
from studio.qa_answers import QaAnswers
from studio.qa_process import STOPPED, Progress, QaProcess
from studio.qa_ruler import QaRuler
from studio.qa_runs import (
    Job,
    Side,
    all_sides,
    headline,
    new_folder,
    remember,
    resume_arguments,
    sides_of,
)
from studio.qa_set import ClipList, read_set
from studio.qa_words import run_words
from studio.widgets.buttons import restyle

REFRESH_MS = 1_000  # while a run goes on


class QualityWindow(QualityLayout):
    """`character_wanted(file, audio)`: a clip is to be shown by the studio's own viewer.

    `checkpoints` gives the folders in which the command looks for public models, too.
    """

    character_wanted = Signal(object, object)

    def __init__(
        self, runs: Path, command: Sequence[str] | None = None, clips: ClipList | None = None,
        checkpoints: Callable[[], Sequence[str]] = tuple, parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clips or read_set(), parent)
        self.runs = runs
        self.side: Side | None = None
        self.baseline: Side | None = None
        self._after_run = ""  # the folder that is being run
        self._checkpoints = checkpoints
        self.run_process = QaProcess(command, self)
        self.answers = QaAnswers(command, self)
        self.belief = QaRuler(command, self)
        self._connect()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.refresh)
        self.reload()
        self.player.timeline.setFocus()

    # --- building ---
    def _connect(self) -> None:
        self.setup.wanted.connect(self.start_run)
        self.list.chosen.connect(self._show_side)
        self.open.clicked.connect(self._choose_run)
        self.head.against.activated.connect(
            lambda _: self.choose_baseline(self.head.against.currentData())
        )
        self.table.picked.connect(self._show_clip)
        self.table.play_wanted.connect(self.player.playback.toggle)
        self.comparison.clip_chosen.connect(self._show_worst)
        self.head.cancel.clicked.connect(self.run_process.cancel)
        self.head.resume.clicked.connect(self.resume_run)
        self.head.retry.clicked.connect(self.run_clip_again)
        self.head.report.clicked.connect(self.make_report)
        self.head.send.clicked.connect(self._send)
        self.run_process.progressed.connect(self._on_progress)
        self.run_process.ended.connect(self._on_run_ended)
        self.answers.compared.connect(self._on_compared)
        self.answers.refused.connect(lambda why: self.comparison.say(why, "danger"))
        self.answers.reported.connect(self._on_reported)
        self.answers.report_failed.connect(self._on_report_failed)
        self.answers.report_said.connect(self._on_report_said)
        self.tabs.bar.currentChanged.connect(lambda _: self._ask_ruler())
        self.ruler.other.clicked.connect(self._choose_validation)
        self.belief.answered.connect(self.ruler.show_ruler)
        self.belief.refused.connect(lambda why: self.ruler.say(why, "danger"))
        self.player.add_keys(self)
        QShortcut(QKeySequence("Esc"), self, self.player.playback.pause)

    # --- runs ---
    def reload(self, select: str = "") -> None:
        """Read the folder of runs again; keep or make a selection."""
        wanted = select or (self.side.argument if self.side else "")
        self.list.show_sides(all_sides(self.runs), wanted)

    def _choose_run(self) -> None:
        text = QFileDialog.getExistingDirectory(self, "A run's folder")
        if text:
            self.open_run(Path(text))

    def open_run(self, folder: Path) -> None:
        """A run of the command line or of another machine, from now on in the list."""
        try:
            remember(self.runs, folder)
        except EngineError as error:
            self.head.note.say([str(error)], "danger")
            return
        self.reload(str(folder.absolute()))

    def start_run(self, name: str, arguments: list[str]) -> None:
        folder = new_folder(self.runs, name)
        self._begin(folder, ["--out", str(folder), "--name", folder.name, *arguments])

    def resume_run(self) -> None:
        if self.side is not None:
            self._again([])

    def run_clip_again(self) -> None:
        """This row alone: a clip may be there in seven configurations and three seeds."""
        job = self.table.current
        if job is not None and self.side is not None:
            self._again(["--again", job.place(self.side.folder)])

    def _again(self, more: list[str]) -> None:
        assert self.side is not None
        try:
            self._begin(self.side.folder, [*resume_arguments(self.side.folder), *more])
        except EngineError as error:
            self.head.note.say([str(error)], "danger")

    def _begin(self, folder: Path, arguments: list[str]) -> None:
        if self.run_process.is_running:
            self.head.note.say(["A run is going on: stop it first, or wait."], "warning")
            return
        self.runs.mkdir(parents=True, exist_ok=True)
        self.head.note.say([])
        self._after_run = str(folder)
        self.head.starting(folder.name)
        looked_in = (word for f in self._checkpoints() for word in ("--checkpoints", f))
        self.run_process.start(["run", *arguments, *looked_in, "--json"])
        self._timer.start(REFRESH_MS)
        self._show_buttons()

    def refresh(self) -> None:
        """New results of the run that goes on; its row, as soon as its folder is there."""
        run = self._after_run
        if run and all(str(side.folder) != run for side in self.list.sides) and sides_of(Path(run)):
            self.reload(run)
        self.list.refresh(run)
        self._show_results()

    def _on_progress(self, found: Progress) -> None:
        self.head.show_progress(found, Path(self._after_run))
        self.refresh()

    def _on_run_ended(self, status: int, _out: str, why: str) -> None:
        self._timer.stop()
        if why:
            self.head.note.say([why], "danger")
        elif status == STOPPED:
            self.head.note.say(["Stopped. What is done is kept: Resume goes on from here."], "info")
        done, self._after_run = self._after_run, ""
        self.reload(done if sides_of(Path(done)) else "")
        self._show_buttons()

    # --- what is shown ---
    def _show_side(self, side: Side | None) -> None:
        kept = self.table.current
        changed = side is None or self.side is None or side.argument != self.side.argument
        self.side = side
        if changed:
            self.player.show_clip(None)
            self.comparison.say(EMPTY)
        self.head.title.setText(side.name if side else "No run yet")
        self.table.show_run(side.jobs if side else [], {})
        self._fill_baselines()
        self._show_results()
        if side is not None and kept is not None and not changed:
            self.table.select_clip(kept.clip)
        elif side is not None and side.refresh():
            self.table.selectRow(0)  # the worst
        if self.baseline is not None and side is not None:
            if side.refresh():
                self._compare()
            else:
                self.comparison.say("No clip of this run is done: there is nothing to compare yet.")
        self._ask_ruler()

    def _fill_baselines(self) -> None:
        mine = self.side.argument if self.side else ""
        others = [side for side in self.list.sides if side.argument != mine]
        kept = self.baseline.argument if self.baseline else ""
        self.head.against.clear()
        self.head.against.addItem("None", None)
        for side in others:
            self.head.against.addItem(side.name, side)
        at = next((i for i, s in enumerate(others, 1) if s.argument == kept), 0)
        self.head.against.setCurrentIndex(at)
        self.head.against.setEnabled(bool(others))
        if at == 0:
            self.baseline = None

    def _show_results(self) -> None:
        side = self.side
        results = side.refresh() if side else {}
        self.table.update_results(results, self.baseline.refresh() if self.baseline else {})
        if side is None:
            self.head.words.setText(START)
            restyle(self.head.words, "")
        else:
            text, tone = run_words(list(results.values()), len(side.jobs))
            self.head.words.setText(text)
            restyle(self.head.words, tone)
            mean = headline(results.values())
            self.head.words.setToolTip("" if mean is None else f"Mean score {mean:.3f}")
        self._show_buttons()

    def _show_buttons(self) -> None:
        running, side = self.run_process.is_running, self.side
        mine = side is not None and str(side.folder) == self._after_run
        unfinished = side is not None and not side.is_complete
        self.setup.start.setEnabled(not running and bool(self.setup.chosen() or self.setup.folder))
        self.head.cancel.setVisible(running)
        self.head.resume.setVisible(unfinished and not running)
        self.head.progress.setVisible(running)
        self.head.pace.setVisible(running)
        picked = self.table.current is not None
        self.head.retry.setEnabled(picked and not running)
        job = self.table.current
        self.head.send.setEnabled(
            job is not None and job.character != "" and job.character_file.is_file()
        )
        has_any = side is not None and bool(side.refresh())
        self.head.report.setEnabled(has_any and not (mine and running) and not self.answers.is_busy)

    def _show_clip(self, job: Job) -> None:
        assert self.side is not None
        result = self.side.refresh().get(job.key)
        if result is None and not job.video.is_file():
            self.player.show_clip(None)
            self.player.pictures.hint = "This clip is not done yet"
            self.player.pictures.update()
        else:
            self.player.show_clip(Shown(job.video, result, self.side.name), self._counterpart(job))
        self._show_buttons()

    def _counterpart(self, job: Job) -> Shown | None:
        """The same clip of the baseline; the same seed if it has it."""
        if self.baseline is None:
            return None
        same = [j for j in self.baseline.jobs if j.clip == job.clip and j.video.is_file()]
        same.sort(key=lambda j: j.seed != job.seed)
        if not same:
            return None
        result = self.baseline.refresh().get(same[0].key)
        return Shown(same[0].video, result, self.baseline.name)

    # --- comparison and report ---
    def choose_baseline(self, side: Side | None) -> None:
        self.baseline = side
        self._show_results()
        if self.table.current is not None:
            self._show_clip(self.table.current)
        if side is None:
            self.answers.forget()
            self.comparison.say(EMPTY)
            return
        self.head.against.setCurrentIndex(max(self.head.against.findText(side.name), 0))
        self._compare()

    def _compare(self) -> None:
        if self.side is not None and self.baseline is not None:
            self.comparison.say("Comparing…")
            self.answers.compare(self.baseline, self.side)

    def _ask_ruler(self, validation: Path | None = None) -> None:
        """When somebody looks: it takes a child process a second."""
        if self.tabs.pages.currentIndex() == RULER:
            self.ruler.say(ASKING)
            self.belief.ask(self.side.folder if self.side else None, validation)

    def _choose_validation(self) -> None:
        text, _ = QFileDialog.getOpenFileName(
            self, "A check of the ruler", "", "Validation (*.json)"
        )
        if text:
            self._ask_ruler(Path(text))

    def make_report(self) -> None:
        if self.side is not None and self.answers.report(self.side, self.baseline):
            self.head.note.say(["Writing the report…"], "info")
            self._show_buttons()

    def _on_compared(self, found: Comparison, a: Side, b: Side) -> None:
        if self.side is None or self.baseline is None:
            return
        if (self.baseline.argument, self.side.argument) == (a.argument, b.argument):
            self.comparison.show_comparison(found, a.name, b.name)
        self._show_buttons()

    def _on_reported(self, page: Path) -> None:
        self.head.note.say([])
        self._show_buttons()
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(page)))

    def _on_report_said(self, line: str) -> None:
        self.head.note.say([f"Writing the report: {line}"], "info")

    def _on_report_failed(self, why: str) -> None:
        self.head.note.say([why], "danger")
        self._show_buttons()

    def _show_worst(self, clip: str) -> None:
        self.tabs.show_page(CLIPS)
        self.table.select_clip(clip)

    def _send(self) -> None:
        job = self.table.current
        if job is not None:
            self.character_wanted.emit(job.character_file, job.audio)

    # --- life ---
    def closeEvent(self, event: QCloseEvent) -> None:
        """Hidden, not ended: a run goes on in the background."""
        self.player.playback.close()
        super().closeEvent(event)

    def shut_down(self) -> None:
        """The studio ends: the run is stopped and can be resumed."""
        self._timer.stop()
        self.player.playback.close()
        self.run_process.shut_down()
        self.answers.process.shut_down()
        self.belief.process.shut_down()
