"""Player of a clip: its film with its sound, against the baseline's if there is one.

`pictures` and `strip` (buttons and timeline) are placed by the window. Both films follow one
position, so that A and B never drift. Knows nothing of runs beyond the two results it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from engine.errors import EngineError
from engine.qa.report import ClipResult
from studio import icons, theme
from studio.panels.quality_pictures import Pane, Pictures
from studio.panels.quality_timeline import FPS, WORST_S, QualityTimeline
from studio.qa_film import Film, FilmLoader
from studio.qa_playback import Playback
from studio.widgets.buttons import label, plain

COLUMNS = 1_200  # of the waveform's overview
SHOW = ("both", "A", "B")


@dataclass(frozen=True, slots=True)
class Shown:
    """A clip of one run: the film's place, its result, and the run's name."""

    video: Path
    result: ClipResult | None
    run: str


class QualityPlayer(QObject):
    """`show_clip(b, a)`: the run's clip and the baseline's, or None for none."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.pictures = Pictures()
        self.timeline = QualityTimeline()
        self.playback = Playback(parent=self)
        self.a: Shown | None = None
        self.b: Shown | None = None
        self.mode = SHOW[0]
        self._drawn = -1  # the frame on screen
        self.films: dict[Path, Film] = {}
        self.faults: dict[Path, str] = {}
        self._stamps: dict[Path, int] = {}  # when each film was written
        self._loader = FilmLoader(self)
        self._loader.loaded.connect(self._on_film)
        self._loader.failed.connect(self._on_fault)
        self._build_buttons()
        self.strip = self._build_strip()
        self.playback.moved.connect(self._on_moved)
        self.playback.changed.connect(self._show_state)
        self.timeline.sought.connect(self.playback.seek)
        self.timeline.stepped.connect(self.playback.step)
        self._show_state()

    # --- building ---
    def _build_buttons(self) -> None:
        self.play = plain("", "Play or pause  (Space)", "play", "round")
        self.play.setAccessibleName("Play or pause")
        self.back = plain("−1", "One frame back  (comma, or Left on the timeline)")
        self.ahead = plain("+1", "One frame on  (full stop, or Right on the timeline)")
        self.loop = plain(
            "Loop worst second", "Play the second that fits worst again and again  (L)"
        )
        self.loop.setCheckable(True)
        self.ab = plain("A and B", "Show both, only A, or only B  (A)")
        self.play.clicked.connect(self.playback.toggle)
        self.back.clicked.connect(lambda: self.playback.step(-1))
        self.ahead.clicked.connect(lambda: self.playback.step(1))
        self.loop.toggled.connect(self._set_loop)
        self.ab.clicked.connect(self.next_mode)

    def _build_strip(self) -> QWidget:
        strip = QWidget()
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.play, self.back, self.ahead, self.loop, self.ab):
            row.addWidget(button)
        self.clock = label("", "soft")
        row.addWidget(self.clock)
        row.addStretch(1)
        self.key_expected, self.key_other, self.key_seen = (
            _legend("╌ expected", "soft"), _legend("━ A", "warning"), _legend("━ seen", "accent"),
        )  # fmt: skip
        for one in (self.key_expected, self.key_other, self.key_seen):
            row.addWidget(one)
        column = QVBoxLayout(strip)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(self.timeline)
        return strip

    def add_keys(self, window: QWidget) -> None:
        """Keys that work in all of `window` but where a text is typed."""
        for key, act in (
            ("Space", self.playback.toggle), ("L", self.loop.click), ("A", self.next_mode),
            (",", lambda: self.playback.step(-1)), (".", lambda: self.playback.step(1)),
        ):  # fmt: skip
            QShortcut(QKeySequence(key), window, act, Qt.ShortcutContext.WindowShortcut)

    # --- what is shown ---
    def show_clip(self, b: Shown | None, a: Shown | None = None) -> None:
        self.loop.setChecked(False)
        wanted = {s.video: _stamp(s.video) for s in (a, b) if s is not None}
        self.films = {
            path: film
            for path, film in self.films.items()
            if wanted.get(path) == self._stamps.get(path)  # not rendered anew meanwhile
        }
        same = b is not None and self.b is not None and b.video == self.b.video
        same = same and b is not None and b.video in self.films
        self.a, self.b, self._stamps, self.faults = a, b, wanted, {}
        for path in wanted.keys() - self.films.keys():
            self._loader.load(path)
        if b is None:
            self.playback.open(Path(), 0.0)
        elif not same:
            length = b.result.duration_s if b.result and b.result.duration_s else 0.0
            self.playback.open(b.video, length)
        self._show_timeline()
        self._show_state()
        self._draw()

    def next_mode(self) -> None:
        if self.a is not None:
            self.mode = SHOW[(SHOW.index(self.mode) + 1) % len(SHOW)]
            self._show_state()
            self._draw()

    @property
    def is_loading(self) -> bool:
        wanted = {s.video for s in (self.a, self.b) if s is not None}
        return bool(wanted - self.films.keys() - self.faults.keys())

    def _on_film(self, path: Path, film: Film) -> None:
        if path not in [s.video for s in (self.a, self.b) if s is not None]:
            return  # another clip was chosen meanwhile
        self.films[path] = film
        if self.b is not None and path == self.b.video and self.playback.end <= 0:
            self.playback.open(path, film.end_s)
            self._show_timeline()
        self._show_state()
        self._draw()

    def _on_fault(self, path: Path, error: EngineError) -> None:
        self.faults[path] = error.message
        self._draw()

    def _show_timeline(self) -> None:
        b, a = self.b, self.a
        audio = self.playback.audio
        overview = audio.overview(COLUMNS) if audio is not None else None
        length = self.playback.end / 48_000
        self.timeline.show_clip(
            b.result if b else None, a.result if a else None, length, overview if b else None
        )
        self.timeline.set_position(self.playback.seconds)

    def _set_loop(self, on: bool) -> None:
        tracks = self.b.result.tracks if self.b and self.b.result else None
        self.timeline.looping = on and tracks is not None
        if on and tracks is not None:
            end = min(tracks.worst_s + WORST_S, self.playback.end / 48_000)
            self.playback.set_loop(tracks.worst_s, end)
            self.playback.play()
        else:
            self.playback.clear_loop()
        self.timeline.update()

    def _show_state(self) -> None:
        ready = self.b is not None and self.playback.end > 0
        for button in (self.play, self.back, self.ahead):
            button.setEnabled(ready)
        measured = ready and self.b is not None and self.b.result is not None
        self.loop.setEnabled(bool(measured and self.b.result.tracks))  # pyright: ignore
        self.ab.setVisible(self.a is not None)
        self.ab.setText({"both": "A and B", "A": "Only A", "B": "Only B"}[self.mode])
        self.play.setIcon(icons.icon("pause" if self.playback.is_playing else "play"))
        self.key_other.setVisible(self.a is not None)
        self.key_seen.setText("━ B" if self.a is not None else "━ seen")
        for one in (self.key_expected, self.key_seen):
            one.setVisible(self.timeline.tracks is not None)

    def _on_moved(self, seconds: float) -> None:
        self.timeline.set_position(seconds)
        if int(seconds * FPS + 1e-3) != self._drawn:
            self._draw()

    def _draw(self) -> None:
        seconds = self.playback.seconds
        self._drawn = frame = int(seconds * FPS + 1e-3)
        ready = self.playback.end > 0
        self.clock.setText(f"{seconds:.2f} s   frame {frame}" if ready else "")
        shown = [("A", self.a), ("B", self.b)] if self.a is not None else [("", self.b)]
        if self.a is not None and self.mode != "both":
            shown = [pair for pair in shown if pair[0] == self.mode]
        self.pictures.show_panes([self._pane(side, one) for side, one in shown if one is not None])

    def _pane(self, side: str, shown: Shown) -> Pane:
        seconds, film = self.playback.seconds, self.films.get(shown.video)
        result = shown.result
        phone = ""
        if result is not None:
            said = (p.name for p in result.phones if p.start_s <= seconds < p.end_s)
            phone = next(said, "")
        if film is None:
            note = self.faults.get(shown.video, "Loading…")
            return Pane(shown.run, side, None, note=note)
        seen, expected = _opening(result, seconds)
        return Pane(shown.run, side, film.image(film.index_at(seconds)), seen, expected, phone)


def _opening(result: ClipResult | None, seconds: float) -> tuple[float | None, float | None]:
    tracks = result.tracks if result is not None else None
    if tracks is None or not tracks.seen:
        return None, None
    i = min(int(seconds * FPS + 1e-3), len(tracks.seen) - 1)
    return tracks.seen[i], tracks.expected[i] if i < len(tracks.expected) else None


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _legend(text: str, tone: str) -> QLabel:
    made = label(text, "caption")
    made.setStyleSheet(f"color: {theme.COLORS[tone]};")
    return made
