"""The report's part "why believe this ruler?": planted faults, what was found, and every check."""

from __future__ import annotations

from html import escape

from engine.qa.report import Check, PlantedRow, Validation
from engine.qa.report_ruler import (
    REFERENCE,
    SPLITS,
    Ruler,
    Standing,
    circumstances,
    fault_words,
    found_words,
    headline,
    is_right,
    mean_headline,
    planted_words,
    short_of,
    splits,
    verdict_words,
)

ANCHOR = "ruler"
TITLE = "Why believe this ruler?"
HEADS = (
    ("what was planted", "text"), ("frames late", ""), ("found", ""), ("within a frame", ""),
    ("headline", ""), ("clips that lose", ""), ("verdict", "text"),
)  # fmt: skip


def link(ruler: Ruler) -> str:
    """A line for the head of the page: the answer, and the way to it."""
    words, tone = _answer(ruler)
    return (
        f'<p class="meta"><a href="#{ANCHOR}">{TITLE}</a> <b class={tone}>{escape(words)}</b></p>'
    )


def section(ruler: Ruler) -> str:
    start = f'<h2 id="{ANCHOR}">{TITLE}</h2>'
    words, tone = _answer(ruler)
    validation = ruler.validation
    if validation is None:
        return f"{start}<p>{escape(ruler.said)}.</p>"
    groups = splits(validation)
    first, rest = groups[:1], groups[1:]
    return (
        f'{start}<p class="answer {tone}">{escape(words)}</p>'
        f'<p class="meta">{escape(ruler.said)}. {escape(_sentence(circumstances(validation)))}</p>'
        "<p>Mouths that are driven by the exact phones get one fault each, are drawn, and are "
        "measured from the pixels like any other clip. The ruler has to find how late a mouth was "
        "made, and to call every fault worse than the same clip without it.</p>"
        f"{''.join(_rows(split, rows) for split, rows in first)}"
        f"{_more(rest)}{_checks(validation)}"
    )


def _answer(ruler: Ruler) -> tuple[str, str]:
    """(sentence, tone)."""
    if ruler.validation is None:
        return "Not checked yet.", "undecided"
    words = headline(ruler.validation)
    if ruler.standing is Standing.OTHER:
        return f"{words} But that was another ruler.", "undecided"
    return words, "good" if ruler.measures else "worse"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _more(groups: list[tuple[str, list[PlantedRow]]]) -> str:
    if not groups:
        return ""
    inside = "".join(_rows(split, rows) for split, rows in groups)
    return f"<details><summary>The other clips, which do not decide</summary>{inside}</details>"


def _rows(split: str, rows: list[PlantedRow]) -> str:
    head = "".join(f"<th{_class(kind)}>{text}</th>" for text, kind in HEADS)
    body = "".join(_row(row) for row in rows)
    clips = max(row.clips for row in rows)
    heads = ", ".join(sorted({row.heads for row in rows if row.heads}))
    return (
        f'<p class="key"><b>{clips} clips, split “{escape(split)}”</b>: '
        f"{escape(SPLITS.get(split, split))}; heads {escape(heads)}.</p>"
        f'<div class="wide"><table class="still"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: PlantedRow) -> str:
    offset, within = found_words(row)
    mean = mean_headline(row)
    tone = "" if row.fault == REFERENCE else "good" if is_right(row) else "bad"
    below = "–" if row.fault == REFERENCE else f"{row.ranked_below_reference:.0%}"
    miss = " bad" if row.planted_late is not None and row.offset_within_1 < row.clips else ""
    return (
        f"<tr><td>{escape(fault_words(row.fault))}</td><td>{planted_words(row)}</td>"
        f'<td>{offset}</td><td class="{miss.strip()}">{within}</td>'
        f"<td>{_bar(mean)}</td><td>{below}</td>"
        f'<td class="text {tone}">{escape(verdict_words(row))}</td></tr>'
    )


def _bar(value: float | None) -> str:
    """The number with a bar beneath: the eye ranks faster than it reads."""
    if value is None:
        return "–"
    share = 100 * min(max(value, 0.0), 1.0)
    return f'<span class="bar" style="--v:{share:.0f}%">{value:.2f}</span>'


def _checks(validation: Validation) -> str:
    ordered = short_of(validation.checks)
    bad = [check for check in ordered if not check.passed]
    good = [check for check in ordered if check.passed]
    parts = [_table(bad)] if bad else []
    if good:
        parts.append(
            f"<details><summary>{len(good)} {'check' if len(good) == 1 else 'checks'} passed"
            f"</summary>{_table(good)}</details>"
        )
    notes = "".join(f'<p class="meta">{escape(_sentence(note))}</p>' for note in validation.notes)
    return f"<h3>Checks, fixed before the test clips were looked at</h3>{''.join(parts)}{notes}"


def _table(checks: list[Check]) -> str:
    rows = "".join(
        f'<tr><td class="text {"good" if c.passed else "bad"}">{_mark(c)}</td>'
        f'<td class=text>{escape(c.name)}</td><td class="text said">{escape(c.said)}</td></tr>'
        for c in checks
    )
    return f'<table class="still"><tbody>{rows}</tbody></table>'


def _mark(check: Check) -> str:
    if check.passed:
        return "passed"
    return "fell short" if check.required else "fell short, does not decide"


def _class(kind: str) -> str:
    return f" class={kind}" if kind else ""
