"""The report's tables of pooled scores: a row a configuration, and a row a language."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from engine.qa.limits import RULES
from engine.qa.page_words import number, words
from engine.qa.pooled import ALL, Pooled, aims, pool
from engine.qa.report import PRIMARY, ClipResult

COLUMNS = (
    PRIMARY, "r0", "offset", "bilabial", "open_vowels", "false_closures", "rounding", "pause_shut",
    "ridge_r0",
)  # fmt: skip
AIMS = (
    "Green reaches the aims of live lip-sync: offset -2 to 0 frames, r0 0.80, p b m 0.90, pauses "
    "shut 0.99."
)
HEAD = "".join(f'<th title="{escape(RULES[n].says)}">{words(n)}</th>' for n in COLUMNS)


def best_first(results: Sequence[ClipResult]) -> list[str]:
    """Names of the configurations by pooled headline, the best first."""
    rows = [row for row in pool(results) if row.group == ALL]
    return [r.configuration for r in sorted(rows, key=lambda r: -r.values.get(PRIMARY, -9.0))]


def configurations(results: Sequence[ClipResult]) -> str:
    """Empty for a single one."""
    order = best_first(results)
    if len(order) < 2:
        return ""
    rows = {row.configuration: row for row in pool(results) if row.group == ALL}
    body = "".join(_row(rows[name], name) for name in order)
    return (
        "<h2>Configurations, the best first</h2><p class=key>Pooled over clips: closures and "
        "pauses by their number, offsets by the median of clips that can be timed. "
        f"{AIMS}</p>"
        f'<div class="wide"><table class="sort"><thead><tr><th class=text>configuration</th>'
        f"<th>clips</th><th>failed</th>{HEAD}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def languages(results: Sequence[ClipResult]) -> str:
    """A table a configuration; empty where there is one language."""
    rows = [row for row in pool(results) if row.group != ALL]
    if len({row.group for row in rows}) < 2:
        return ""
    names = [n for n in best_first(results) if any(row.configuration == n for row in rows)]
    head = f"<tr><th class=text>language</th><th>clips</th><th>failed</th>{HEAD}</tr>"
    tables = []
    for name in names:
        body = "".join(_row(row, row.group) for row in rows if row.configuration == name)
        title = f"<h3>{escape(name or 'unnamed')}</h3>" if len(names) > 1 else ""
        tables.append(
            f'{title}<div class="wide"><table class="sort"><thead>{head}</thead>'
            f"<tbody>{body}</tbody></table></div>"
        )
    inside = "".join(tables)
    if len(names) > 1:
        inside = f"<details><summary>Every configuration by language</summary>{inside}</details>"
    return f"<h2>By language</h2><p class=key>{AIMS}</p>{inside}"


def _row(row: Pooled, name: str) -> str:
    reached = {check.name for check in aims(row) if check.passed}
    cells = "".join(_cell(row, column, column in reached) for column in COLUMNS)
    failed = f'<td class="{"bad" if row.failed else ""}">{row.failed}</td>'
    return f"<tr><td>{escape(name or 'unnamed')}</td><td>{row.clips}</td>{failed}{cells}</tr>"


def _cell(row: Pooled, column: str, reached: bool) -> str:
    value = row.values.get(column)
    if value is None:
        return '<td data-v="">–</td>'
    strong = ' class="aim"' if reached else ""
    return f'<td{strong} data-v="{value}">{number(value)}</td>'
