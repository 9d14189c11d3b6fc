"""The studio's own line icons: path data on a 24 px grid, rendered at every size in theme colours.

Drawn for this project. Knows nothing of actions or widgets; `icon("mic")` is all there is.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from studio.theme import COLORS

SIZES = (16, 20, 24, 32, 40, 48, 64, 96)  # px of the device: sharp from scale 1 to 3
# name -> path data; a part that starts with "!" is filled, the rest is stroked.
PATHS: dict[str, str] = {
    "picture": "M4 5h16v14H4z|M4 16l4.5-4.5 4 4 3-3L20 17|!M9 8a1.3 1.3 0 1 0 .01 0z",
    "open": "M3.5 18.5v-12h6l2 2.5h9v9.5z",
    "paste": "M8 5H5.5v15.5h13V5H16|M8.5 3.5h7V7h-7z",
    "save": "M4.5 4.5h11.5l3.5 3.5v11.5h-15z|M8 4.5v5h7v-5|M8 19.5V14h8v5.5",
    "save-as": "M4.5 19.5v-15H15l4 4V11|M8 4.5v4.5h6V4.5|M12 20.5l.6-3 6.4-6.4 2.4 2.4-6.4 6.4z",
    "undo": "M8.5 5L4.5 9l4 4|M4.5 9H14a5.2 5.2 0 0 1 0 10.4H9",
    "redo": "M15.5 5l4 4-4 4|M19.5 9H10a5.2 5.2 0 0 0 0 10.4h5",
    "mic": "M12 3.5a2.8 2.8 0 0 1 2.8 2.8v5a2.8 2.8 0 0 1-5.6 0v-5A2.8 2.8 0 0 1 12 3.5z"
    "|M5.8 11.2a6.2 6.2 0 0 0 12.4 0|M12 17.4v3.1",
    "mic-off": "M9.2 7V6.3a2.8 2.8 0 0 1 5.6 0v5|M14 13.4a2.8 2.8 0 0 1-4.8-2.1V9.6"
    "|M5.8 11.2a6.2 6.2 0 0 0 9.8 5.1|M18.2 11.2c0 .9-.2 1.7-.5 2.4|M12 17.4v3.1|M4 4l16 16",
    "speaker": "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5z|M15.5 9a4.2 4.2 0 0 1 0 6"
    "|M18 6.5a7.8 7.8 0 0 1 0 11",
    "speaker-off": "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5z|M16 9.5l5 5|M21 9.5l-5 5",
    "audio-file": "M6 3.5h8l4.5 4.5v12.5H6z|M14 3.5V8h4.5|M9.5 13v3|M12.2 11.5v6|M15 13v3",
    "play": "!M7.5 4.8v14.4L19.5 12z",
    "pause": "!M6.5 5h4v14h-4z|!M13.5 5h4v14h-4z",
    "stop": "!M6.5 6.5h11v11h-11z",
    "live": "!M12 9.8a2.2 2.2 0 1 0 .01 0z|M8 8a5.7 5.7 0 0 0 0 8|M16 8a5.7 5.7 0 0 1 0 8"
    "|M5.2 5.2a9.6 9.6 0 0 0 0 13.6|M18.8 5.2a9.6 9.6 0 0 1 0 13.6",
    "sample": "M4.5 10.5v3|M8.2 7.5v9|M12 4.5v15|M15.8 8v8|M19.5 10.5v3",
    "interrupt": "M12 4v7|M7.5 6.5a7.3 7.3 0 1 0 9 0",
    "resync": "M5 12a7 7 0 0 1 12-4.9l2 1.9|M19 4.5V9h-4.5|M19 12a7 7 0 0 1-12 4.9l-2-1.9"
    "|M5 19.5V15h4.5",
    "record": "M12 4.5a7.5 7.5 0 1 0 .01 0z|!M12 8.5a3.5 3.5 0 1 0 .01 0z",
    "snapshot": "M4 7.5h3.5L9 5h6l1.5 2.5H20v11.5H4z|M12 9.7a3.4 3.4 0 1 0 .01 0z",
    "fullscreen": "M4.5 9V4.5H9|M15 4.5h4.5V9|M19.5 15v4.5H15|M9 19.5H4.5V15",
    "fit": "M7 3.5h10v17H7z|M12 7v10|M10 9l2-2 2 2|M10 15l2 2 2-2",
    "one-to-one": "M6 9.5l2.2-1.6v8.6|M15.8 9.5L18 7.9v8.6|!M12 9a1.1 1.1 0 1 0 .01 0z"
    "|!M12 13.2a1.1 1.1 0 1 0 .01 0z",
    "hud": "M4 17.5a8.5 8.5 0 1 1 16 0|M12 14.5l3.5-4.5|!M12 13a1.6 1.6 0 1 0 .01 0z",
    "timings": "M4.5 19.5h15|M6.5 16v-5|M10.2 16V8|M13.8 16v-3.5|M17.5 16V5.5",
    "voice": "M4.5 10.5v3|M8.2 7.5v9|M12 4.5v15|M15.8 8v8|M19.5 10.5v3",
    "character": "M12 4a3.8 3.8 0 1 0 .01 0z|M4.8 20a7.2 7.2 0 0 1 14.4 0",
    "log": "M5 6.5h14|M5 10.2h14|M5 13.8h9|M5 17.5h11",
    "help": "M12 3.5a8.5 8.5 0 1 0 .01 0z|M9.7 9.5a2.4 2.4 0 1 1 3.6 2.1c-.9.5-1.3 1-1.3 2"
    "|!M12 15.6a1 1 0 1 0 .01 0z",
    "keyboard": "M3.5 7h17v10.5h-17z|M7 10.3h.01|M10.3 10.3h.01|M13.7 10.3h.01|M17 10.3h.01"
    "|M8.5 14h7",
    "reset": "M5 12a7 7 0 1 0 2.2-5.1L5 9|M5 4.5V9h4.5",
    "export": "M12 14.5V4|M8 7.5L12 3.7l4 3.8|M5 14v5.5h14V14",
    "copy": "M8.5 8.5h11v11h-11z|M15.5 8.5v-4h-11v11h4",
    "close": "M6.5 6.5l11 11|M17.5 6.5l-11 11",
    "search": "M10.5 4.5a6 6 0 1 0 .01 0z|M15 15l4.5 4.5",
    "warning": "M12 4.5l8.5 15h-17z|M12 10v4.5|!M12 16a.9.9 0 1 0 .01 0z",
    "info": "M12 3.5a8.5 8.5 0 1 0 .01 0z|M12 11v5.5|!M12 7a.9.9 0 1 0 .01 0z",
    "check": "M5 12.5l4.5 4.5L19 7.5",
    "crop": "M7 3v14h14|M3 7h14v14",
    "quit": "M10 4.5H5v15h5|M14.5 8l4 4-4 4|M18.5 12H9.5",
    "doctor": "M12 5v14|M5 12h14",
    "chevron": "M7 10l5 5 5-5",
    "float": "M9 5h10v10H9z|M15 15v4H5V9h4",
    "panels": "M4 5h16v14H4z|M9.5 5v14|M15 5v14",
    "more": "!M6 10.8a1.2 1.2 0 1 0 .01 0z|!M12 10.8a1.2 1.2 0 1 0 .01 0z"
    "|!M18 10.8a1.2 1.2 0 1 0 .01 0z",
    "recent": "M12 3.5a8.5 8.5 0 1 0 .01 0z|M12 7.5V12l3 2.5",
    "models": "M12 3.8l7.5 4.2v8L12 20.2 4.5 16V8z|M4.5 8l7.5 4.2L19.5 8|M12 12.2v8",
    "engine": "M8 8h8v8H8z|M10 4v4|M14 4v4|M10 16v4|M14 16v4|M4 10h4|M4 14h4|M16 10h4|M16 14h4",
}


@cache
def icon(name: str, tone: str = "text") -> QIcon:
    """An icon in a theme colour; disabled is dimmed, checked is the accent."""
    made = QIcon()
    for size in SIZES:
        made.addPixmap(pixmap(name, size, tone))
        made.addPixmap(pixmap(name, size, "disabled"), QIcon.Mode.Disabled)
        if tone == "text":
            on = pixmap(name, size, "accent")
            for mode in (QIcon.Mode.Normal, QIcon.Mode.Active):
                made.addPixmap(on, mode, QIcon.State.On)
    return made


@cache
def pixmap(name: str, size_px: int, tone: str = "text") -> QPixmap:
    """The icon at exactly `size_px` device pixels."""
    made = QPixmap(size_px, size_px)
    made.fill(Qt.GlobalColor.transparent)
    painter = QPainter(made)
    paint(painter, QRectF(0, 0, size_px, size_px), name, tone)
    painter.end()
    return made


def paint(painter: QPainter, rect: QRectF, name: str, tone: str = "text") -> None:
    """Draw the icon into `rect`; vector, so sharp at any scale."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    QSvgRenderer(QByteArray(_svg(name, COLORS[tone]))).render(painter, rect)
    painter.restore()


def _svg(name: str, color: str) -> bytes:
    parts = []
    for path in PATHS[name].split("|"):
        if path.startswith("!"):
            parts.append(f'<path d="{path[1:]}" fill="{color}"/>')
        else:
            parts.append(
                f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.7" '
                'stroke-linecap="round" stroke-linejoin="round"/>'
            )
    body = "".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">{body}</svg>'.encode()
