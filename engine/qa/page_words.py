"""Names and numbers of scores as the report writes them."""

from __future__ import annotations

from html import escape

NAMES = {
    "bilabial": "p\u00a0b\u00a0m shut", "bilabial_raw": "p\u00a0b\u00a0m shut, raw",
    "ridge_r0": "2nd opinion r0", "ridge_offset": "2nd opinion offset",
}  # fmt: skip


def words(name: str) -> str:
    return escape(NAMES.get(name, name.replace("_", " ")))


def unit(text: str) -> str:
    return "" if text in ("0..1", "r", "share", "S", "opening") else text


def number(value: float) -> str:
    """Two digits, never minus nothing."""
    return f"{round(value, 2) + 0.0:.2f}" if abs(value) < 100 else f"{value:.0f}"
