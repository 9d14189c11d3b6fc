"""Drawings of the report: distributions of scores, and one clip's sound, phones and lips, as SVG.

Text in, text out; every number is rounded, so that the same input gives the same bytes. Knows
nothing of files, videos or the rest of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np

from engine.qa.report import ClipResult, PhoneSpan, Score

WIDTH = 1080  # of a distribution, CSS pixels
ROW = 28
LABEL = 170
TIMELINE = 1080
FPS = 24
CLOSING = frozenset(("P", "B", "M"))


Row = tuple[str, str, list[tuple[ClipResult, Score]]]


def distributions(rows: Sequence[Row], one_axis: bool = False) -> str:
    """A line a score: a dot a clip, the limits as a band, the median as a bar.

    `rows` holds (name, what it means, [(clip, score)]) with values only. `one_axis`: all rows are
    of one score and share its axis.
    """
    spans = [_span(scored) for _, _, scored in rows]
    if one_axis:
        spans = [(min(low for low, _ in spans), max(high for _, high in spans))] * len(rows)
    height = ROW * len(rows) + 8
    lines = [
        f'<svg class="dist" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Distribution of every score over the clips">'
    ]
    for i, (name, says, scored) in enumerate(rows):
        lines.append(_distribution(name, says, scored, 4 + ROW * i, spans[i]))
    return "".join(lines) + "</svg>"


def _span(scored: list[tuple[ClipResult, Score]]) -> tuple[float, float]:
    """The axis: all values and limits, with air."""
    first = scored[0][1]
    values = [s.value for _, s in scored if s.value is not None]
    values += [v for v in (first.low, first.high) if v is not None]
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin


def _distribution(
    name: str, says: str, scored: list[tuple[ClipResult, Score]], top: int,
    axis: tuple[float, float],
) -> str:  # fmt: skip
    values = np.array([s.value for _, s in scored], float)
    first = scored[0][1]
    limits = [v for v in (first.low, first.high) if v is not None]
    low, high = axis
    left, span, middle = LABEL, WIDTH - LABEL - 60, top + ROW / 2

    def x(value: float) -> float:
        return left + span * (value - low) / (high - low)

    a = x(first.low) if first.low is not None else left
    b = x(first.high) if first.high is not None else left + span
    parts = [
        f"<g><title>{escape(says)}</title>",
        f'<text class="name" x="{LABEL - 12}" y="{middle + 4:.1f}">{escape(name)}</text>',
        f'<rect class="track" x="{left}" y="{top + 5}" width="{span}" height="{ROW - 10}"/>',
    ]
    if limits:
        parts.append(
            f'<rect class="band" x="{a:.1f}" y="{top + 5}" width="{b - a:.1f}" '
            f'height="{ROW - 10}"/>'
        )
    for clip, score in scored:
        assert score.value is not None
        state = "" if score.passed is not False else " bad"
        jitter = (sum(map(ord, clip.clip)) % 9 - 4) * 1.4
        parts.append(
            f'<a href="#{anchor(clip)}"><circle class="dot{state}" cx="{x(score.value):.1f}" '
            f'cy="{middle + jitter:.1f}" r="3.2"><title>{escape(clip.clip)}: {score.value:.3g} '
            f"{escape(score.unit)}</title></circle></a>"
        )
    median = float(np.median(values))
    parts.append(
        f'<line class="median" x1="{x(median):.1f}" x2="{x(median):.1f}" y1="{top + 3}" '
        f'y2="{top + ROW - 3}"/><text class="value" x="{WIDTH - 52}" y="{middle + 4:.1f}">'
        f"{round(median, 2) + 0.0:.2f}</text></g>"
    )
    return "".join(parts)


def anchor(clip: ClipResult) -> str:
    name = "-".join(filter(None, (clip.configuration, clip.clip, str(clip.seed))))
    return "clip-" + "".join(c if c.isalnum() else "-" for c in name)


def timeline(clip: ClipResult, pcm: np.ndarray | None) -> str:
    """Waveform, phones, opening expected and seen, the worst second shaded: one time axis."""
    seconds = max(clip.duration_s, 0.1)
    scale = TIMELINE / seconds
    parts = [f'<svg class="time" viewBox="0 0 {TIMELINE} 196" preserveAspectRatio="none">']
    if clip.tracks is not None:
        parts.append(
            f'<rect class="worst" x="{clip.tracks.worst_s * scale:.1f}" y="0" '
            f'width="{scale:.1f}" height="196"/>'
        )
    if pcm is not None and len(pcm):
        parts.append(_waveform(pcm))
    parts += [_phone(span, scale) for span in clip.phones if span.name != "SIL"]
    if clip.tracks is not None:
        parts.append(_curve(clip.tracks.expected, "expected", scale))
        parts.append(_curve(clip.tracks.seen, "seen", scale))
    parts += [
        f'<text class="tick" x="{s * scale + 3:.1f}" y="193">{s} s</text>'
        f'<line class="grid" x1="{s * scale:.1f}" x2="{s * scale:.1f}" y1="0" y2="196"/>'
        for s in range(int(seconds) + 1)
    ]
    return "".join(parts) + "</svg>"


def _waveform(pcm: np.ndarray, top: float = 0.0, height: float = 50.0) -> str:
    """Peaks of 360 stretches of `pcm` [n], as one outline."""
    count = TIMELINE // 3
    edges = np.linspace(0, len(pcm), count + 1).astype(int)
    peaks = np.array([np.abs(pcm[a:b]).max() if b > a else 0.0 for a, b in pairwise(edges)])
    peaks = peaks / max(float(peaks.max()), 1e-6) * height / 2
    middle = top + height / 2
    up = [f"{3 * i},{middle - p:.1f}" for i, p in enumerate(peaks)]
    down = [f"{3 * i},{middle + p:.1f}" for i, p in reversed(list(enumerate(peaks)))]
    return f'<polygon class="wave" points="{" ".join(up + down)}"/>'


def _phone(span: PhoneSpan, scale: float) -> str:
    x, width = span.start_s * scale, (span.end_s - span.start_s) * scale
    kind = " closing" if span.name in CLOSING else ""
    label = ""
    if width > 7 * len(span.name) + 2:
        label = f'<text class="phone" x="{x + width / 2:.1f}" y="68">{escape(span.name)}</text>'
    return (
        f'<rect class="span{kind}" x="{x:.1f}" y="55" width="{max(width - 1, 1):.1f}" height="18">'
        f"<title>{escape(span.name)} {span.start_s:.2f} s</title></rect>{label}"
    )


def _curve(values: Sequence[float], kind: str, scale: float) -> str:
    """Opening 0..1 on the 24 fps grid, between y = 178 (shut) and 94 (open): 1.2 stays below the
    phones."""
    points = [
        f"{(i + 0.5) / FPS * scale:.1f},{178 - 84 * min(max(v, 0.0), 1.2):.1f}"
        for i, v in enumerate(values)
    ]
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'
