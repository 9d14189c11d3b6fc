"""Contrast, computed: WCAG 2.1 asks 4.5:1 of text and 3:1 of marks that carry meaning."""

from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QColor, QFontInfo

from studio import icons, theme
from studio.stylesheet import sheet

SURFACES = ("stage", "window", "surface", "raised")
TEXT = [(t, s) for t in ("text", "soft", "faint") for s in SURFACES]
TEXT += [("text", "hover"), ("text", "pressed"), ("on_accent", "accent"), ("accent", "surface"),
         ("on_accent", "accent_hover"), ("on_accent", "accent_pressed"), ("accent", "tint"),
         ("on_danger", "danger_fill"), ("warning", "surface"), ("danger", "window"),
         ("danger", "surface"), ("text", "tint")]  # fmt: skip
MARKS = [(m, s) for m in ("accent", "live", "warning", "danger") for s in SURFACES]


@pytest.mark.parametrize(("first", "second", "wanted"), [
    ("#ffffff", "#000000", 21.0), ("#777777", "#777777", 1.0), ("#767676", "#ffffff", 4.54),
])  # fmt: skip
def test_contrast_is_wcags(first, second, wanted):
    assert theme.contrast(QColor(first), QColor(second)) == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize(("text", "surface"), TEXT)
def test_text_contrast(text, surface):
    assert theme.contrast(theme.color(text), theme.color(surface)) >= 4.5


@pytest.mark.parametrize(("mark", "surface"), MARKS)
def test_mark_contrast(mark, surface):
    assert theme.contrast(theme.color(mark), theme.color(surface)) >= 3.0


def test_notes_are_readable():
    """The notes' own backgrounds stand in the sheet."""
    for background in re.findall(r'role="note"\]\S* \{ background: (#\w+)', sheet(theme.COLORS)):
        assert theme.contrast(theme.color("text"), QColor(background)) >= 4.5, background


@pytest.mark.parametrize("stage", theme.STAGE_COLORS)
def test_stages_stand_out(stage):
    assert theme.contrast(QColor(theme.STAGE_COLORS[stage]), theme.color("surface")) >= 3.0


def test_sheet_is_filled_in_and_names_real_files():
    text = sheet(theme.COLORS)
    assert "$" not in text
    for url in re.findall(r"url\(([^)]+)\)", text):
        assert theme.Path(url).is_file(), url


def test_own_font_is_used(themed):
    for weight in (400, 500, 600):
        info = QFontInfo(theme.font(13, theme.QFont.Weight(weight)))
        assert info.family() == theme.FAMILY and abs(info.weight() - weight) <= 50


@pytest.mark.parametrize("name", icons.PATHS)
def test_icons_draw_something(themed, name):
    image = icons.pixmap(name, 48).toImage()
    inked = sum(image.pixelColor(x, y).alpha() > 100 for x in range(48) for y in range(48))
    assert 20 < inked < 1500, inked
