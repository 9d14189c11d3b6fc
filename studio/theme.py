"""The one dark theme: colours, spacing, type scale, palette. `stylesheet.py` turns it into QSS.

Knows nothing of any particular window. Colours are measured: tests hold text to WCAG 4.5:1 and
marks to 3:1 against the surface they are used on.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication

from studio.stylesheet import sheet

COLORS: dict[str, str] = {
    "stage": "#0b0c0e",  # behind the face: darker than everything, without a hue
    "window": "#121317",
    "surface": "#181a1f",  # panels
    "raised": "#22252c",  # buttons, fields
    "hover": "#2b2f38",
    "pressed": "#1c1f25",
    "line": "#282b33",
    "outline": "#5f6777",  # borders that must be seen: 3:1 on raised is asked of marks only
    "text": "#eceef2",
    "soft": "#a9b0bd",  # secondary text
    "faint": "#8b93a2",  # captions, units: still 4.5:1
    "disabled": "#5b616d",
    "accent": "#8fa8ff",
    "accent_hover": "#a9bcff",
    "accent_pressed": "#7790ea",
    "on_accent": "#0d1230",
    "tint": "#252b45",  # accent at rest, behind selections
    "live": "#4ad295",
    "warning": "#f2b84b",
    "danger": "#ff6b6b",
    "danger_fill": "#c93a3f",
    "on_danger": "#ffffff",
}
# One hue a stage, in the order of the sound's way; told apart by lightness too.
STAGE_COLORS: dict[str, str] = {
    "capture": "#5d6b8a",
    "audio": "#7c8fd9",
    "encode": "#6cc0e5",
    "denoise": "#58cfa6",
    "decode": "#d6c65b",
    "transport": "#e8945a",
    "paint": "#e07a9a",
}
SPACE = 4  # px; every gap is a multiple
GAP, MARGIN, RADIUS = 2 * SPACE, 4 * SPACE, 6
CAPTION, BODY, TITLE, HEADING = 11, 13, 14, 20  # px
FONTS = Path(__file__).resolve().parents[1] / "assets" / "fonts"
FAMILY = "Inter"
MONO = "DejaVu Sans Mono"


def color(name: str, alpha: float = 1.0) -> QColor:
    """A theme colour by its name, with `alpha` 0..1."""
    value = QColor(COLORS[name])
    value.setAlphaF(alpha)
    return value


def font(size_px: int = BODY, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The app's font with figures of equal width, so that numbers do not dance."""
    made = QFont(FAMILY)
    made.setPixelSize(size_px)
    made.setWeight(weight)
    made.setFeature(QFont.Tag("tnum"), 1)
    return made


def contrast(first: QColor, second: QColor) -> float:
    """WCAG contrast ratio, 1 (same) to 21 (black on white)."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def apply(app: QApplication) -> None:
    """Fonts, style, palette and sheet; the platform's own look is left behind on purpose."""
    for file in sorted(FONTS.glob("*.otf")):
        QFontDatabase.addApplicationFont(str(file))
    app.setStyle("Fusion")
    app.setFont(font())
    app.setPalette(_palette())
    app.setStyleSheet(sheet(COLORS))


def _luminance(value: QColor) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = linear(value.redF()), linear(value.greenF()), linear(value.blueF())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _palette() -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette()
    table = {
        role.Window: "window",
        role.WindowText: "text",
        role.Base: "raised",
        role.AlternateBase: "surface",
        role.Text: "text",
        role.Button: "raised",
        role.ButtonText: "text",
        role.ToolTipBase: "raised",
        role.ToolTipText: "text",
        role.PlaceholderText: "faint",
        role.Highlight: "accent",
        role.HighlightedText: "on_accent",
        role.Link: "accent",
        role.Mid: "line",
        role.Dark: "stage",
        role.Shadow: "stage",
        role.Light: "hover",
    }
    for key, name in table.items():
        palette.setColor(key, color(name))
    for key in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, key, color("disabled"))
    return palette


ALIGN_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
ALIGN_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
