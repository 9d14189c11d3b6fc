"""One intensity: name, slider, value and a reset button that shows only when it is not natural.

Knows nothing of what the value means.
"""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QToolButton, QWidget

from studio import icons, theme


class Slider(QSlider):
    """A slider that goes where it is clicked, and back to natural on a double click."""

    reset_requested = Signal()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            share = (event.position().x() - 7) / max(self.width() - 14, 1)
            self.setValue(round(self.minimum() + share * (self.maximum() - self.minimum())))
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset_requested.emit()


class SliderRow(QWidget):
    """`changed(value)` at every step by a person; `set_value` stays silent."""

    changed = Signal(float)

    def __init__(
        self,
        name: str,
        tooltip: str,
        limits: tuple[float, float] = (0.0, 2.0),
        natural: float = 1.0,
        unit: str = "%",
        label_px: int = 76,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._natural, self._unit = natural, unit
        self._factor = 100.0 if unit == "%" else 1.0
        self.slider = Slider(Qt.Orientation.Horizontal)
        self.slider.setRange(round(limits[0] * self._factor), round(limits[1] * self._factor))
        self.slider.setPageStep(max((self.slider.maximum() - self.slider.minimum()) // 10, 1))
        self.slider.setAccessibleName(name)
        self._value = QLabel()
        self.reset = QToolButton()
        self._build(name, tooltip, label_px)
        self.slider.valueChanged.connect(self._on_change)
        self.slider.reset_requested.connect(self._on_reset)
        self.reset.clicked.connect(self._on_reset)
        self.set_value(natural)

    def _build(self, name: str, tooltip: str, label_px: int) -> None:
        label = QLabel(name)
        label.setFixedWidth(label_px)
        label.setBuddy(self.slider)
        self._value.setFixedWidth(48)
        self._value.setAlignment(theme.ALIGN_RIGHT)
        self._value.setProperty("role", "soft")
        self.reset.setIcon(icons.icon("reset", "soft"))
        self.reset.setProperty("role", "bare")
        self.reset.setFixedSize(24, 24)
        self.reset.setStyleSheet("padding: 0; min-height: 0;")
        self.reset.setToolTip(f"Reset {name.lower()} to its natural value")
        self.reset.setAccessibleName(f"Reset {name.lower()}")
        keep = self.reset.sizePolicy()
        keep.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(keep)
        self.slider.setToolTip(tooltip)
        label.setToolTip(tooltip)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for widget in (label, self.slider, self._value, self.reset):
            row.addWidget(widget, 1 if widget is self.slider else 0)

    @property
    def value(self) -> float:
        return self.slider.value() / self._factor

    def set_value(self, value: float) -> None:
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(value * self._factor))
        self._show()

    def _on_change(self) -> None:
        self._show()
        self.changed.emit(self.value)

    def _on_reset(self) -> None:
        self.slider.setValue(round(self._natural * self._factor))

    def _show(self) -> None:
        self._value.setText(self.text())
        self.reset.setVisible(abs(self.value - self._natural) > 0.5 / self._factor)

    def text(self) -> str:
        return f"{self.slider.value()} {self._unit}"
