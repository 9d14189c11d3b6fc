"""The timings plot: no label of any range is cut off at the window's edge."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPainter

from studio import theme
from studio.widgets.history_plot import LABEL_PX, TOPS_MS, HistoryPlot, axis_label

WIDTH, HEIGHT = 236, 124


def columns(image: QImage, left: int, top: int, bottom: int) -> list[int]:
    """Columns from `left` on that hold ink between the rows: anything but the background."""
    ground = image.pixel(image.width() - 1, image.height() - 1)
    return [
        x
        for x in range(left, image.width())
        if any(image.pixel(x, y) != ground for y in range(top, bottom))
    ]


def alone(text: str) -> int:
    """Pixels from the first to the last ink of a label with all the room in the world."""
    image = QImage(200, 20, QImage.Format.Format_RGB32)
    image.fill(theme.color("surface"))
    painter = QPainter(image)
    painter.setFont(theme.font(LABEL_PX))
    painter.setPen(theme.color("faint"))
    painter.drawText(10, 14, text)
    painter.end()
    inked = columns(image, 0, 0, 20)
    return inked[-1] - inked[0]


@pytest.mark.parametrize("top", TOPS_MS[1:])
def test_the_label_of_the_range_is_whole(themed, top):
    plot = HistoryPlot()
    plot.resize(WIDTH, HEIGHT)
    plot.show_stacks({"decode": np.full(60, top / 1.06)})
    assert plot.top_ms == top
    image = QImage(WIDTH, HEIGHT, QImage.Format.Format_RGB32)
    image.fill(theme.color("surface"))
    plot.render(image)
    area = plot.plot_rect()
    inked = columns(image, round(area.right()) + 2, 0, round(area.top()) + 8)
    assert abs(inked[-1] - inked[0] - alone(axis_label(top, top))) <= 1  # antialiasing
    assert inked[-1] < WIDTH - 1, "the last column stays free"


def test_the_plot_stays_where_it_is_when_the_range_changes(themed):
    plot = HistoryPlot()
    plot.resize(WIDTH, HEIGHT)
    plot.show_stacks({"decode": np.full(60, 15.0)})
    before = plot.plot_rect()
    plot.show_stacks({"decode": np.full(60, 900.0)})
    assert plot.plot_rect() == before
