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
from engine.qa.page_clips import FILE_CHECKS, Labels, section, table, worst_first
from engine.qa.page_configurations import best_first, configurations, languages
from engine.qa.page_media import BUDGET, Media
from engine.qa.page_ruler import link
from engine.qa.page_ruler import section as ruler_section
from engine.qa.page_style import CSS, SCRIPT
from engine.qa.page_svg import Row, distributions
from engine.qa.page_words import number, unit, words
from engine.qa.report import PRIMARY, ClipResult, Comparison, Difference, Score, Verdict
from engine.qa.report_ruler import Ruler, Standing

NOT_CHECKED = Ruler(Standing.NONE)
TILES = ("headline", "offset", "r0", "bilabial", "pause_shut", "ridge_r0")
BESIDE = ("headline", "r0", "offset", "bilabial")  # drawn a row a configuration
TONE = {
    Verdict.SAME: "good", Verdict.BETTER: "good", Verdict.WORSE: "worse",
    Verdict.UNDECIDED: "undecided",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """What a report is made of. `video_of` and `sound_of` give a clip's file and its PCM [n];
    `beside` is the folder of the page, below which it may link to videos; `made` is told how many
    more clips have their pictures, which is where the time goes (0.5 s of CPU a clip)."""

    results: Sequence[ClipResult]
    set_version: str
    set_hash: str
    command: str = ""
    comparison: Comparison | None = None
    ruler: Ruler = NOT_CHECKED
    beside: Path | None = None
    budget: int = BUDGET
    threads: int = 1
    video_of: Callable[[ClipResult], Path | None] = field(default=lambda clip: None)
    sound_of: Callable[[ClipResult], np.ndarray | None] = field(default=lambda clip: None)
    made: Callable[[int], None] = field(default=lambda more: None)


def write_page(path: Path, page: Page) -> None:
    """Write the report, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(html(page), encoding="utf-8")
    part.replace(path)


def html(page: Page) -> str:
    ordered = worst_first(page.results)
    labels = Labels.of(page.results)
    title = escape(_name(page))
    return "\n".join([
        "<!doctype html><html lang=en><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>Lip-sync report: {title}</title><style>{CSS}</style>",
        _head(page), "" if labels.configurations else _tiles(page.results),
        _comparison(page.comparison), configurations(page.results),
        *_distributions(ordered, labels), languages(page.results), table(ordered, labels),
        "<h2>Clips, the worst first</h2>",
        '<p class="key">Opening of the mouth: <i class="s">seen</i> in the picture, '
        '<i class="e">expected</i> from the phones. p, b and m are marked red: there the lips must '
        "meet. Shaded: the second that fits worst; its middle half is the film strip.</p>",
        *_clips(page, ordered, labels), ruler_section(page.ruler),
        f"<script>{SCRIPT}</script></html>\n",
    ])  # fmt: skip


def _clips(page: Page, ordered: Sequence[ClipResult], labels: Labels) -> list[str]:
    """Sections, by configuration where there are several: each has its share of the films."""
    names = best_first(page.results)
    parts: list[str] = []
    for name in names:
        own = [clip for clip in ordered if clip.configuration == name]
        media = Media(page.beside, page.budget // len(names), page.threads)
        shown = media.of_all([_media_of(page, clip) for clip in own], page.made)
        text = "".join(
            section(clip, labels, one, None if clip.failed else page.sound_of(clip))
            for clip, one in zip(own, shown, strict=True)
        )
        if labels.configurations:
            title = f"{escape(name)}: {len(own)} {'clip' if len(own) == 1 else 'clips'}"
            text = f"<details><summary>{title}</summary>{text}</details>"
        parts.append(text)
    return parts


def _media_of(page: Page, clip: ClipResult) -> tuple[Path | None, float | None]:
    """The video, and where its worst second begins; a failed clip shows its reason alone."""
    worst = clip.tracks.worst_s if clip.tracks else None
    return (None if clip.failed else page.video_of(clip)), worst


def _name(page: Page) -> str:
    if page.comparison is not None:
        return f"{page.comparison.b} against {page.comparison.a}"
    names = best_first(page.results)
    return names[0] or "a run" if len(names) == 1 else f"{len(names)} configurations"


def _head(page: Page) -> str:
    results = page.results
    scored = [r for r in results if not r.failed]
    if page.comparison is not None:
        tone, verdict = TONE[page.comparison.verdict], hero(page.comparison)
    else:
        tone, verdict = verdict_of(results)
    scorers = ", ".join(sorted({r.scorer for r in results}))
    measured = [name or "unnamed" for name in best_first(results)]
    many = "Configurations" if len(measured) > 1 else "Configuration"
    return (
        f"<h1>Lip-sync report: {escape(_name(page))}</h1>"
        f'<p class="verdict {tone}">{escape(verdict)}</p>{_said(page.comparison)}'
        f'<p class="meta"><b>{len(scored)}</b> of {len(results)} clips scored from their pixels. '
        f"{many} <b>{escape(', '.join(measured))}</b>, set {escape(page.set_version)} "
        f"({page.set_hash[:12]}), scorer {escape(scorers)}. Results of another scorer are not "
        f"comparable with these.{_command(page.command)}</p>{link(page.ruler)}"
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
    names = best_first(results)
    scored = [r for r in results if not r.failed]
    if not scored:
        return "worse", "No clip could be scored: the reasons are below."
    primary = [s for r in scored if (s := r.score(PRIMARY)) is not None and s.value is not None]
    failed = len(results) - len(scored)
    lost = f", {failed} could not be scored" if failed else ""
    judged = {r.configuration for r in results if r.value(PRIMARY) is not None}
    if len(judged) > 1:
        return "neutral", f"{names[0]} fits the sound best of {len(judged)} configurations{lost}."
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
                f'<div class="tile"><span>{words(name)}, median</span><b>'
                f"{number(float(np.median(values)))} <small>{escape(unit(rule.unit))}</small></b>"
                f"<span>{escape(rule.says)}</span></div>"
            )
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _comparison(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    head = "<tr>" + "".join(
        f"<th{' class=text' if i in (0, 6, 7) else ''}>{t}</th>"
        for i, t in enumerate(
            ("score", "clips", "B minus A, + better", "95 % interval", "margin", "rerun band",
             "verdict", "to decide it")
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
    need = escape(d.to_decide) or "–"
    return (
        f"<tr><td>{words(d.name)}</td><td>{d.clips}</td><td>{d.mean:+.3f}</td>"
        f"<td>{d.low95:+.3f} … {d.high95:+.3f}</td><td>{d.margin:g}</td><td>{d.band:.3f}</td>"
        f'<td class="text {tone}">{escape(str(d.verdict))}</td>'
        f'<td class="text said">{need}</td></tr>'
    )


def _distributions(results: Sequence[ClipResult], labels: Labels) -> list[str]:
    """Every score of one configuration, or a few of several beside each other."""
    if labels.configurations:
        return [_beside(results)]
    rows, same = [], []
    for name, rule in RULES.items():
        scored = _scored(results, name)
        if len(scored) < 2 or (rule.low is None and rule.high is None):
            continue
        if name in FILE_CHECKS and all(s.passed is not False for _, s in scored):
            same.append(words(name))
        else:
            rows.append((words(name), rule.says, scored))
    if not rows:
        return []
    fine = f'<p class="key">Within limits in every clip: {", ".join(same)}.</p>' if same else ""
    return [
        "<h2>Every clip, every score</h2><p class=key>A dot is a clip, the green band the limits, "
        f"the bar the median. Click a dot to see its clip.</p>{distributions(rows)}{fine}"
    ]


def _beside(results: Sequence[ClipResult]) -> str:
    parts = []
    for name in BESIDE:
        rows: list[Row] = []
        for configuration in best_first(results):
            scored = _scored([r for r in results if r.configuration == configuration], name)
            if scored:
                rows.append((configuration, RULES[name].says, scored))
        if rows:
            said = escape(RULES[name].says)
            parts.append(
                f"<h3>{words(name)}</h3><p class=key>{said}</p>{distributions(rows, True)}"
            )
    if not parts:
        return ""
    said = "A dot is a clip, and leads to it; the green band the limits, the bar the median."
    return f"<h2>Every clip</h2><p class=key>{said}</p>{''.join(parts)}"


def _scored(results: Sequence[ClipResult], name: str) -> list[tuple[ClipResult, Score]]:
    found = ((r, r.score(name)) for r in results)
    return [(r, s) for r, s in found if s is not None and s.value is not None]
