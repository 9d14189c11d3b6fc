"""Table of a run's clips, filled while they are scored; every column sorts, the worst first.

Shows Side and ClipResult rows; knows nothing of processes or films.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from engine.qa.report import PRIMARY, ClipResult
from studio import theme
from studio.qa_runs import Job
from studio.qa_words import COLUMNS, NONE, number, result_words

Results = dict[tuple[str, int], ClipResult]
Index = QModelIndex | QPersistentModelIndex
BASE = ("Clip", "Voice")
SCORES = tuple(COLUMNS)
AGAINST, RESULT = len(BASE) + len(SCORES), len(BASE) + len(SCORES) + 1
COUNT = RESULT + 1
SORT = Qt.ItemDataRole.UserRole
ALIGN = {True: theme.ALIGN_RIGHT, False: theme.ALIGN_LEFT}
WIDTHS = (190, 96, 64, 56, 54, 52, 58, 60, 68, 70)
ROOT = QModelIndex()


class ClipModel(QAbstractTableModel):
    """Rows are jobs; `show` replaces them, `update` brings new results."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.results: Results = {}
        self.baseline: Results = {}
        self._means: dict[str, float] = {}  # of the baseline
        self.seeds = False  # several of a clip: its seed is named

    def show(self, jobs: list[Job], results: Results) -> None:
        self.beginResetModel()
        self.jobs, self.results = jobs, results
        self.seeds = len({job.seed for job in jobs}) > 1
        self.endResetModel()

    def update(self, results: Results, baseline: Results) -> None:
        if results != self.results or baseline != self.baseline:
            if baseline != self.baseline:
                self._means = means_of(baseline)
            self.results, self.baseline = results, baseline
            if self.jobs:
                last = self.index(len(self.jobs) - 1, COUNT - 1)
                self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self.jobs)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else COUNT

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return ALIGN[len(BASE) <= section <= AGAINST]
        if role == Qt.ItemDataRole.ToolTipRole and len(BASE) <= section < AGAINST:
            return COLUMNS[SCORES[section - len(BASE)]][1]
        if role == Qt.ItemDataRole.DisplayRole:
            heads = (*BASE, *(COLUMNS[name][0] for name in SCORES), "vs A", "Result")
            return heads[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        job, column = self.jobs[index.row()], index.column()
        result = self.results.get(job.key)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(job, result, column)
        if role == SORT:
            return self._order(job, result, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            failed = result is not None and result.failed != ""
            return ALIGN[len(BASE) <= column <= AGAINST and not failed]
        if role == Qt.ItemDataRole.ForegroundRole:
            return theme.color(self._tone(job, result, column))
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tip(result, column)
        return None

    def gain(self, job: Job) -> float | None:
        """Headline of this run minus the baseline's mean over its seeds."""
        mine, theirs = self.results.get(job.key), self._means.get(job.clip)
        value = mine.value(PRIMARY) if mine is not None else None
        return None if value is None or theirs is None else value - theirs

    def _text(self, job: Job, result: ClipResult | None, column: int) -> str:
        if column < len(BASE):
            clip = f"{job.clip}  seed {job.seed}" if self.seeds else job.clip
            return (clip, " · ".join(filter(None, (job.language, job.character))) or NONE)[column]
        if column == RESULT or (column == len(BASE) and result is not None and result.failed):
            return result_words(result)[0]
        if column == AGAINST:
            gain = self.gain(job)
            return NONE if gain is None else f"{gain:+.2f}"
        name = SCORES[column - len(BASE)]
        return number(name, result.value(name) if result else None)

    def _order(self, job: Job, result: ClipResult | None, column: int) -> Any:
        if column < len(BASE):
            return self._text(job, result, column)
        if column == RESULT:
            return 2 if result is None else 0 if result.failed else 1
        if column == AGAINST:
            gain = self.gain(job)
            return 9.0 if gain is None else gain
        name = SCORES[column - len(BASE)]
        value = result.value(name) if result else None
        if value is None:  # failed clips before all others, waiting ones behind
            return -99.0 if result is not None and result.failed else 99.0
        return value

    def _tone(self, job: Job, result: ClipResult | None, column: int) -> str:
        if column == RESULT or (column == len(BASE) and result is not None and result.failed):
            return result_words(result)[1]
        if column == AGAINST:
            gain = self.gain(job) or 0.0
            return "danger" if gain < -0.05 else "live" if gain > 0.05 else "soft"
        if column == 0:
            return "text" if result is not None else "faint"
        if column < len(BASE):
            return "soft"
        score = result.score(SCORES[column - len(BASE)]) if result else None
        if score is None or score.value is None:
            return "disabled"
        return "warning" if score.passed is False else "text"

    def _tip(self, result: ClipResult | None, column: int) -> str:
        if result is None or column < len(BASE):
            return ""
        if column >= AGAINST or result.failed:
            text, tone = result_words(result)
            said = f"Outside its limits: {text}" if tone == "warning" else text
            return said if column == RESULT or result.failed else "Score minus the baseline's"
        score = result.score(SCORES[column - len(BASE)])
        return score.skipped if score is not None and score.value is None else ""


def means_of(results: Results) -> dict[str, float]:
    """The headline of each clip, the mean over its seeds."""
    values: dict[str, list[float]] = {}
    for (clip, _), result in results.items():
        if (value := result.value(PRIMARY)) is not None:
            values.setdefault(clip, []).append(value)
    return {clip: sum(found) / len(found) for clip, found in values.items()}


class QualityTable(QTableView):
    """`picked(job)` when a person or a key selects a clip."""

    picked = Signal(object)
    play_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.clips = ClipModel()
        self.sorted = QSortFilterProxyModel(self)
        self.sorted.setSourceModel(self.clips)
        self.sorted.setSortRole(SORT)
        self.setModel(self.sorted)
        self.setSortingEnabled(True)
        self.sortByColumn(len(BASE), Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # the seed stands at a clip's end
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(28)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        for column, width in enumerate(WIDTHS):
            self.setColumnWidth(column, width)
        self.setAccessibleName("Clips of the run")
        self.setToolTip("Select a clip to see it; Space plays it")
        self.setColumnHidden(AGAINST, True)
        self.selectionModel().currentRowChanged.connect(self._pick)
        for changed in (self.sorted.layoutChanged, self.sorted.modelReset, self.sorted.dataChanged):
            changed.connect(self._span_failed)

    def show_run(self, jobs: list[Job], results: Results) -> None:
        self.clips.show(jobs, results)

    def update_results(self, results: Results, baseline: Results) -> None:
        self.clips.update(results, baseline)
        self.setColumnHidden(AGAINST, not baseline)

    def select_clip(self, clip: str) -> None:
        """The first row of that clip, if it is there."""
        for row in range(self.sorted.rowCount()):
            if self._job(row).clip == clip:
                self.selectRow(row)
                return

    @property
    def current(self) -> Job | None:
        index = self.currentIndex()
        return self._job(index.row()) if index.isValid() else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space plays: a row is selected by moving to it."""
        if event.key() == Qt.Key.Key_Space:
            self.play_wanted.emit()
        else:
            super().keyPressEvent(event)

    def _span_failed(self) -> None:
        """A reason is a sentence: it takes the place of the scores that are not there."""
        self.clearSpans()
        for row in range(self.sorted.rowCount()):
            result = self.clips.results.get(self._job(row).key)
            if result is not None and result.failed:
                self.setSpan(row, len(BASE), 1, COUNT - len(BASE))

    def _job(self, row: int) -> Job:
        return self.clips.jobs[self.sorted.mapToSource(self.sorted.index(row, 0)).row()]

    def _pick(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.picked.emit(self._job(current.row()))
