"""The report's clips: the table of all, and a section a clip with film strip, curves and video.

Takes results and what `Media` makes of their files; knows nothing of verdicts over clips.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from engine.qa.limits import RULES
from engine.qa.page_media import Shown
from engine.qa.page_svg import anchor, timeline
from engine.qa.page_words import number, words
from engine.qa.report import PRIMARY, ClipResult, Score

COLUMNS = (  # of the table
    PRIMARY, "offset", "r0", "bilabial", "open_vowels", "rounding", "dynamics", "pause_shut",
    "ridge_offset",
)  # fmt: skip
FILE_CHECKS = (  # said in one word where they all pass
    "faces_missing", "frame_count", "rate_error", "start_gap", "black_frames", "repeated",
    "longest_still", "sharpness", "head_jump",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """Which parts of a clip's label tell it from the others of the page."""

    configurations: bool
    seeds: bool

    @classmethod
    def of(cls, results: Sequence[ClipResult]) -> Labels:
        return cls(
            len({r.configuration for r in results}) > 1,
            len({(r.configuration, r.seed) for r in results})
            > len({r.configuration for r in results}),
        )

    def seed(self, clip: ClipResult) -> str:
        return f" · seed {clip.seed}" if self.seeds else ""


def worst_first(results: Sequence[ClipResult]) -> list[ClipResult]:
    """Failed clips, then by the headline, then by name."""

    def key(clip: ClipResult) -> tuple[bool, float, str, str, int]:
        value = clip.value(PRIMARY)
        return (
            not clip.failed, 9.0 if value is None else value, clip.clip, clip.configuration,
            clip.seed,
        )  # fmt: skip

    return sorted(results, key=key)


def table(results: Sequence[ClipResult], labels: Labels) -> str:
    heads = ["clip", *(["configuration"] if labels.configurations else []), "language", "character"]
    head = "".join(f"<th class=text>{text}</th>" for text in heads)
    head += "".join(f'<th title="{escape(RULES[n].says)}">{words(n)}</th>' for n in COLUMNS)
    rows = "".join(_table_row(clip, labels) for clip in results)
    return (
        '<h2>All clips</h2><p class="key">Click a heading to sort. Red is outside its limit.</p>'
        f'<div class="wide"><table class="sort"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _table_row(clip: ClipResult, labels: Labels) -> str:
    name = escape(clip.clip + labels.seed(clip))
    start = f'<tr><td><a href="#{anchor(clip)}">{name}</a></td>'
    if labels.configurations:
        start += f"<td class=text>{escape(clip.configuration)}</td>"
    start += f"<td class=text>{escape(clip.language)}</td><td class=text>{escape(clip.character)}"
    if clip.failed:
        why = f'<td class="text said failed" colspan={len(COLUMNS)} data-v="-99">'
        return f"{start}</td>{why}{escape(clip.failed)}</td></tr>"
    return start + "</td>" + "".join(_cell(clip.score(name)) for name in COLUMNS) + "</tr>"


def _cell(score: Score | None) -> str:
    if score is None or score.value is None:
        why = escape(score.skipped) if score is not None else ""
        return f'<td data-v="" title="{why}">–</td>'
    bad = ' class="bad"' if score.passed is False else ""
    return f'<td{bad} data-v="{score.value}">{number(score.value)}</td>'


def section(clip: ClipResult, labels: Labels, media: Shown, pcm: np.ndarray | None) -> str:
    about = ", ".join(
        escape(text)
        for text in (clip.language, clip.character, f"{clip.duration_s:.1f} s", *clip.notes)
        if text
    )
    title = escape(clip.clip + labels.seed(clip))
    start = f'<section class="clip" id="{anchor(clip)}"><h3>{title}</h3>'
    if clip.failed:
        return f'{start}<p class="failed">Not scored: {escape(clip.failed)}.</p></section>'
    picture = f'<img class="strip" alt="film strip" src="{media.strip}">' if media.strip else ""
    return (
        f'{start}<p class="meta">{about}</p><div class="row"><div class="media">{_video(media)}'
        f'</div><div class="charts">{picture}{timeline(clip, pcm)}'
        f'<div class="chips">{_chips(clip)}</div></div></div></section>'
    )


def _video(media: Shown) -> str:
    poster = f' poster="{media.poster}"' if media.poster else ""
    if media.film:
        return f'<video controls preload=none{poster} src="{escape(media.film)}"></video>'
    still = f'<img class="still" alt="a frame of the clip" src="{media.poster}">'
    return (still if media.poster else "") + (f"<p class=key>{escape(media.lost)}</p>")


def _chips(clip: ClipResult) -> str:
    """Every score; of the file only what is wrong."""
    known = [s for s in clip.scores if s.value is not None]
    checks = [s for s in known if s.name in FILE_CHECKS]
    shown = [s for s in known if s not in checks or s.passed is False]
    chips = [_chip(score) for score in shown]
    if checks and all(s.passed is not False for s in checks):
        said = "; ".join(f"{s.name.replace('_', ' ')} {number(s.value or 0.0)}" for s in checks)
        chips.append(f'<span class="fine" title="{escape(said)}">file is sound</span>')
    return "".join(chips)


def _chip(score: Score) -> str:
    assert score.value is not None
    bad = ' class="bad"' if score.passed is False else ""
    said = escape(RULES[score.name].says) if score.name in RULES else ""
    return f'<span{bad} title="{said}">{words(score.name)} <b>{number(score.value)}</b></span>'
