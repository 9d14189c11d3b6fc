"""The report of a run: one HTML page that needs no network, verdict first, worst clips first.

Beside it `tables.py` writes the same figures for machines. Knows nothing of how clips are rendered
or scored; videos and sounds come as paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from engine.qa.limits import RULES
from engine.qa.page_media import film_strip, preview
from engine.qa.page_style import CSS, SCRIPT
from engine.qa.page_svg import anchor, distributions, timeline
from engine.qa.report import (
    PRIMARY,
    ClipResult,
    Comparison,
    Difference,
    Score,
    Validation,
    Verdict,
)

COLUMNS = (  # of the table
    "headline", "offset", "r0", "bilabial", "open_vowels", "rounding", "dynamics", "pause_shut",
    "ridge_offset",
)  # fmt: skip
TILES = ("headline", "offset", "r0", "bilabial", "pause_shut", "ridge_r0")
TONE = {
    Verdict.SAME: "good", Verdict.BETTER: "good", Verdict.WORSE: "worse",
    Verdict.UNDECIDED: "undecided",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """What a report is made of. `video_of` and `sound_of` give a clip's file and its PCM [n]."""

    results: Sequence[ClipResult]
    set_version: str
    set_hash: str
    command: str = ""
    comparison: Comparison | None = None
    validation: Validation | None = None
    video_of: Callable[[ClipResult], Path | None] = field(default=lambda clip: None)
    sound_of: Callable[[ClipResult], np.ndarray | None] = field(default=lambda clip: None)


def write_page(path: Path, page: Page) -> None:
    """Write the report, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(html(page), encoding="utf-8")
    part.replace(path)


def html(page: Page) -> str:
    ordered = worst_first(page.results)
    title = escape(_name(page))
    return "\n".join([
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>Lip-sync report: {title}</title><style>{CSS}</style>",
        _head(page), _tiles(page.results), _comparison(page.comparison),
        _distributions(ordered), _table(ordered), _validation(page.validation),
        "<h2>Clips, the worst first</h2>",
        '<p class="key">Opening of the mouth: <i class="s">seen</i> in the picture, '
        '<i class="e">expected</i> from the phones. p, b and m are marked red: there the lips must '
        "meet. Shaded: the second that fits worst; its middle half is the film strip.</p>",
        *(_clip(page, clip) for clip in ordered),
        f"<script>{SCRIPT}</script></html>\n",
    ])  # fmt: skip


def worst_first(results: Sequence[ClipResult]) -> list[ClipResult]:
    """Failed clips, then by the headline, then by name."""

    def key(clip: ClipResult) -> tuple[bool, float, str, int]:
        value = clip.value(PRIMARY)
        return (not clip.failed, 9.0 if value is None else value, clip.clip, clip.seed)

    return sorted(results, key=key)


def _name(page: Page) -> str:
    if page.comparison is not None:
        return f"{page.comparison.b} against {page.comparison.a}"
    return next((r.configuration for r in page.results if r.configuration), "a run")


def _head(page: Page) -> str:
    results = page.results
    scored = [r for r in results if not r.failed]
    if page.comparison is not None:
        tone, words = TONE[page.comparison.verdict], hero(page.comparison)
    else:
        tone, words = verdict_of(results)
    scorers = ", ".join(sorted({r.scorer for r in results}))
    measured = sorted({r.configuration or "unnamed" for r in results})
    return (
        f"<h1>Lip-sync report: {escape(_name(page))}</h1>"
        f'<p class="verdict {tone}">{escape(words)}</p>{_said(page.comparison)}'
        f'<p class="meta"><b>{len(scored)}</b> of {len(results)} clips scored from their pixels. '
        f"Configuration <b>{escape(', '.join(measured))}</b>, set {escape(page.set_version)} "
        f"({page.set_hash[:12]}), scorer {escape(scorers)}. Results of another scorer are not "
        f"comparable with these.{_command(page.command)}</p>"
    )


def hero(comparison: Comparison) -> str:
    """The verdict as a sentence without numbers; those follow."""
    a, b = comparison.a or "A", comparison.b or "B"
    return {
        Verdict.SAME: f"{b} is no worse than {a}, within the margin.",
        Verdict.BETTER: f"{b} is better than {a}.",
        Verdict.WORSE: f"{b} is worse than {a}.",
        Verdict.UNDECIDED: f"Undecided: too few clips to tell {b} from {a}.",
    }[comparison.verdict]


def _said(comparison: Comparison | None) -> str:
    return f"<p>{escape(comparison.words.capitalize())}.</p>" if comparison is not None else ""


def _command(command: str) -> str:
    return f"<br><code>{escape(command)}</code>" if command else ""


def verdict_of(results: Sequence[ClipResult]) -> tuple[str, str]:
    """(tone, sentence) of one run without a baseline."""
    scored = [r for r in results if not r.failed]
    if not scored:
        return "worse", "No clip could be scored: the reasons are below."
    primary = [s for r in scored if (s := r.score(PRIMARY)) is not None and s.value is not None]
    failed = len(results) - len(scored)
    lost = f", {failed} could not be scored" if failed else ""
    if not primary:
        return "undecided", f"Files are sound; no transcript, so lips were not judged{lost}."
    good = sum(s.passed is not False for s in primary)
    share = good / len(primary)
    tone = "good" if share >= 0.9 and not failed else "undecided" if share >= 0.5 else "worse"
    return tone, f"Lips fit the sound in {good} of {len(primary)} clips{lost}."


def _tiles(results: Sequence[ClipResult]) -> str:
    tiles = []
    for name in TILES:
        values = [v for r in results if (v := r.value(name)) is not None]
        if values:
            rule = RULES[name]
            tiles.append(
                f'<div class="tile"><span>{_words(name)}, median</span><b>'
                f"{_number(float(np.median(values)))} <small>{escape(_unit(rule.unit))}</small></b>"
                f"<span>{escape(rule.says)}</span></div>"
            )
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _comparison(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    head = "<tr>" + "".join(
        f"<th{' class=text' if i in (0, 6) else ''}>{t}</th>"
        for i, t in enumerate(
            ("score", "clips", "B minus A, + better", "95 % interval", "margin", "rerun band",
             "verdict", "clips to decide")
        )
    ) + "</tr>"  # fmt: skip
    rows = "".join(_difference(d) for d in comparison.differences)
    failed = "".join(f"<li>{escape(line)}</li>" for line in comparison.failed)
    lost = f'<ul class="failed">{failed}</ul>' if failed else ""
    return (
        f"<h2>{escape(comparison.b)} (B) against {escape(comparison.a)} (A)</h2>"
        "<p>The same clips in pairs; intervals by bootstrap over clips; the family is tested "
        "together (Holm). A difference counts when it leaves both the margin and the rerun band."
        f"</p>{lost}<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    )


def _difference(d: Difference) -> str:
    tone = TONE[d.verdict]
    need = str(d.clips_needed) if d.clips_needed else "–"
    return (
        f"<tr><td>{_words(d.name)}</td><td>{d.clips}</td><td>{d.mean:+.3f}</td>"
        f"<td>{d.low95:+.3f} … {d.high95:+.3f}</td><td>{d.margin:g}</td><td>{d.band:.3f}</td>"
        f'<td class="text {tone}">{escape(str(d.verdict))}</td><td>{need}</td></tr>'
    )


def _distributions(results: Sequence[ClipResult]) -> str:
    rows = []
    for name, rule in RULES.items():
        scored = [
            (r, s) for r in results if (s := r.score(name)) is not None and s.value is not None
        ]
        if len(scored) > 1 and (rule.low is not None or rule.high is not None):
            rows.append((_words(name), rule.says, scored))
    if not rows:
        return ""
    return (
        "<h2>Every clip, every score</h2><p class=key>A dot is a clip, the green band the limits, "
        f"the bar the median. Click a dot to see its clip.</p>{distributions(rows)}"
    )


def _table(results: Sequence[ClipResult]) -> str:
    head = "<th class=text>clip</th><th class=text>language</th><th class=text>character</th>"
    head += "".join(f'<th title="{escape(RULES[n].says)}">{_words(n)}</th>' for n in COLUMNS)
    rows = "".join(_table_row(clip) for clip in results)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        '<h2>All clips</h2><p class="key">Click a heading to sort.</p>'
        f'<div class="wide">{table}</div>'
    )


def _table_row(clip: ClipResult) -> str:
    label = clip.clip + (f" · seed {clip.seed}" if clip.seed else "")
    start = (
        f'<tr><td><a href="#{anchor(clip)}">{escape(label)}</a></td>'
        f"<td class=text>{escape(clip.language)}</td><td class=text>{escape(clip.character)}</td>"
    )
    if clip.failed:
        return (
            f'{start}<td class="text failed" colspan={len(COLUMNS)}>{escape(clip.failed)}</td></tr>'
        )
    return start + "".join(_cell(clip.score(name)) for name in COLUMNS) + "</tr>"


def _cell(score: Score | None) -> str:
    if score is None or score.value is None:
        why = escape(score.skipped) if score is not None else ""
        return f'<td data-v="" title="{why}">–</td>'
    bad = ' class="bad"' if score.passed is False else ""
    return f'<td{bad} data-v="{score.value}">{_number(score.value)}</td>'


def _clip(page: Page, clip: ClipResult) -> str:
    title = f"<h3>{escape(clip.clip)}</h3>"
    about = ", ".join(
        escape(text)
        for text in (clip.language, clip.character, f"{clip.duration_s:.1f} s", *clip.notes)
        if text
    )
    start = f'<section class="clip" id="{anchor(clip)}">{title}<p class="meta">{about}</p>'
    if clip.failed:
        return f'{start}<p class="failed">Not scored: {escape(clip.failed)}</p></section>'
    video = page.video_of(clip)
    strip = film_strip(video, clip.tracks.worst_s) if video and clip.tracks else ""
    film = preview(video) if video else ""
    media = f'<video controls preload=none src="{film}"></video>' if film else ""
    picture = f'<img class="strip" alt="film strip" src="{strip}">' if strip else ""
    return (
        f'{start}<div class="row"><div class="media">{media}</div><div class="charts">{picture}'
        f'{timeline(clip, page.sound_of(clip))}<div class="chips">{_chips(clip)}</div></div></div>'
        "</section>"
    )


def _chips(clip: ClipResult) -> str:
    chips = []
    for score in clip.scores:
        if score.value is not None:
            bad = ' class="bad"' if score.passed is False else ""
            said = escape(RULES[score.name].says) if score.name in RULES else ""
            chips.append(
                f'<span{bad} title="{said}">{_words(score.name)} {_number(score.value)}</span>'
            )
    return "".join(chips)


def _validation(validation: Validation | None) -> str:
    if validation is None:
        return ""
    checks = "".join(
        f'<tr><td class="text {"good" if c.passed else "bad"}">{"yes" if c.passed else "no"}</td>'
        f"<td class=text>{escape(c.name)}</td><td class=text>{escape(c.said)}</td></tr>"
        for c in validation.checks
    )
    return (
        "<h2>Why believe these numbers</h2><p>Faults were planted in clips and characters that "
        "chose no threshold; the ruler had to find and rank them.</p>"
        f"<table><tbody>{checks}</tbody></table>"
    )


def _words(name: str) -> str:
    return escape(name.replace("_", " "))


def _unit(unit: str) -> str:
    return "" if unit in ("0..1", "r", "share", "S") else unit


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
