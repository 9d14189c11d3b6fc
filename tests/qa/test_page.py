"""The report and its tables: verdict first, worst first, nothing from a network, equal bytes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np

from engine.qa.limits import make_score
from engine.qa.page import Page, hero, html, verdict_of
from engine.qa.page_clips import worst_first
from engine.qa.page_media import film_strip, lower_face, preview
from engine.qa.report import ClipResult, Comparison, PhoneSpan, Tracks, Verdict
from engine.qa.tables import csv_text, junit_text


def clip(name: str, headline: float | None, r0: float = 0.8, **more) -> ClipResult:
    scores = [make_score("headline", headline), make_score("r0", r0)]
    tracks = Tracks([0.1, 0.9, 0.2], [0.0, 1.0, 0.1], [0.5, 0.5, 0.5], 0.0)
    return ClipResult(
        name, "abc", configuration="portrait", language="en", duration_s=2.0, tracks=tracks,
        scores=scores, phones=[PhoneSpan("M", 0.0, 0.5)], **more,
    )  # fmt: skip


RESULTS = [
    clip("good", 0.9),
    clip("bad", 0.1, r0=0.2),
    ClipResult("lost", "abc", configuration="portrait", failed="no <face> in 3 of 4 frames"),
]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href") and v]


def test_worst_first_and_verdict_in_words() -> None:
    assert [r.clip for r in worst_first(RESULTS)] == ["lost", "bad", "good"]
    tone, words = verdict_of(RESULTS)
    assert tone == "undecided"
    assert words == "Lips fit the sound in 1 of 2 clips, 1 could not be scored."
    assert verdict_of([RESULTS[2]])[0] == "worse"
    assert verdict_of([clip("a", 0.9)]) == ("good", "Lips fit the sound in 1 of 1 clips.")


def test_page_needs_no_network_and_escapes() -> None:
    text = html(Page(RESULTS, "1.0", "f" * 64, sound_of=lambda r: np.ones(96_000, np.float32)))
    parser = Tags()
    parser.feed(text)
    assert parser.links
    assert all(link.startswith(("#", "data:")) for link in parser.links)
    assert "no &lt;face&gt; in 3 of 4 frames" in text
    assert text.index("Lips fit") < text.index("All clips") < text.index('id="clip-portrait-bad-0"')


def test_same_input_same_bytes_and_timings_left_out() -> None:
    slower = [clip("good", 0.9, timings_ms={"score": 9.0}), *RESULTS[1:]]
    assert csv_text(RESULTS) == csv_text(slower[::-1])
    assert csv_text(RESULTS).splitlines()[1].startswith("bad,portrait,0,abc")


def test_junit_counts_failures_and_errors() -> None:
    root = ET.fromstring(junit_text(RESULTS))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")


def test_media_of_a_file_that_is_none(tmp_path) -> None:
    broken = tmp_path / "a.mp4"
    broken.write_bytes(b"no video")
    assert film_strip(broken, 0.0) == ""
    assert preview(broken) == ""
    whole = lower_face(np.zeros((60, 40, 3), np.uint8))
    assert whole == (slice(0, 60), slice(0, 40))


def test_a_comparison_begins_with_a_sentence() -> None:
    worse = Comparison("old", "new", "abc", Verdict.WORSE, "worse: headline -0.2", [], [])
    assert hero(worse) == "new is worse than old."
    text = html(Page(RESULTS, "1.0", "f" * 64, comparison=worse))
    assert text.index("new is worse than old.") < text.index("Worse: headline -0.2.")
