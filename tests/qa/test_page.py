"""The report and its tables: verdict first, worst first, nothing from a network, equal bytes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import av
import msgspec
import numpy as np
import pytest

from engine.qa.limits import make_score
from engine.qa.page import Page, hero, html, verdict_of
from engine.qa.page_clips import worst_first
from engine.qa.page_media import Media, lower_face, preview, stills
from engine.qa.page_words import number
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
    assert stills(broken, 0.0) == ("", "")
    assert preview(broken) == ""
    whole = lower_face(np.zeros((60, 40, 3), np.uint8))
    assert whole == (slice(0, 60), slice(0, 40))


def test_a_comparison_begins_with_a_sentence() -> None:
    worse = Comparison("old", "new", "abc", Verdict.WORSE, "worse: headline -0.2", [], [])
    assert hero(worse) == "new is worse than old."
    text = html(Page(RESULTS, "1.0", "f" * 64, comparison=worse))
    assert text.index("new is worse than old.") < text.index("Worse: headline -0.2.")


def many() -> list[ClipResult]:
    """Two configurations of three clips, and one seed more of the better one."""
    return [
        *(
            msgspec.structs.replace(c, configuration="best")
            for c in (clip("a", 0.9), clip("b", 0.8))
        ),
        *(
            msgspec.structs.replace(c, configuration="loud")
            for c in (clip("a", 0.1), clip("b", 0.2))
        ),
        msgspec.structs.replace(clip("a", 0.9), configuration="best", seed=2),
        ClipResult("c", "abc", configuration="loud", failed="black"),
    ]


def test_several_configurations_are_told_apart() -> None:
    text = html(Page(many(), "1.0", "f" * 64))
    assert "best fits the sound best of 2 configurations, 1 could not be scored." in text
    ids = re.findall(r'id="(clip-[^"]+)"', text)
    assert len(ids) == len(set(ids)) == 6
    links = set(re.findall(r'href="#(clip-[^"]+)"', text))
    assert links == set(ids), "each link leads to its own clip"
    table = text[text.index("Configurations, the best first") :]
    assert table.index("<td>best</td>") < table.index("<td>loud</td>")
    assert "<summary>loud: 3 clips</summary>" in text and "a · seed 2" in text


def test_without_transcripts_none_is_called_the_best() -> None:
    silent = [msgspec.structs.replace(clip("a", None), configuration=n) for n in ("x", "y")]
    assert verdict_of(silent)[1].startswith("Files are sound; no transcript")
    assert "Every clip</h2>" not in html(Page([RESULTS[2], *[
        msgspec.structs.replace(RESULTS[2], configuration="y")]], "1", "f" * 64))  # fmt: skip


def test_file_checks_that_all_pass_are_one_word_and_a_miss_is_shown() -> None:
    fine = clip("a", 0.9)
    checks = [make_score("faces_missing", 0.0), make_score("repeated", 0.0)]
    bad = [make_score("faces_missing", 3.0), make_score("repeated", 0.0)]
    results = [
        msgspec.structs.replace(fine, scores=[*fine.scores, *checks]),
        msgspec.structs.replace(fine, clip="b", scores=[*fine.scores, *bad]),
    ]
    text = html(Page(results, "1", "f" * 64))
    first, second = text.index('id="clip-portrait-a-0"'), text.index('id="clip-portrait-b-0"')
    assert "file is sound" in text[first:second] and "faces missing <b>" not in text[first:second]
    assert "file is sound" not in text[second:] and "faces missing <b>3.00" in text[second:]
    assert "Within limits in every clip: repeated." in text


def test_numbers_have_no_minus_nothing() -> None:
    assert [number(v) for v in (-0.001, 0.125, -1.5, 240.0)] == ["0.00", "0.12", "-1.50", "240"]


@pytest.mark.parametrize("threads", [1, 2])
def test_films_over_the_budget_are_linked(tmp_path, threads) -> None:
    inside, outside = tmp_path / "run" / "videos 1" / "a.mp4", tmp_path / "b.mp4"
    for path in (inside, outside):
        write_film(path)
    asked = [(inside, 0.0), (inside, 0.0), (outside, 0.0), (None, None)]
    told: list[int] = []
    shown = Media(tmp_path / "run", 1, threads).of_all(asked, told.append)
    assert sum(told) == len(asked)
    first, linked, lost, none = shown
    assert first.film.startswith("data:video/mp4;base64,") and first.strip and first.poster
    assert first.size == len(first.film) + len(first.strip)
    assert linked.film == "videos%201/a.mp4" and not linked.strip
    assert linked.poster == first.poster
    assert (lost.film, lost.strip) == ("", "") and "b.mp4 is not in it" in lost.lost
    assert none.lost == "The video was not kept."


def write_film(path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=24)
        video.width, video.height, video.pix_fmt = 64, 96, "yuv420p"
        for i in range(24):
            pixels = np.full((96, 64, 3), 10 * i, np.uint8)
            out.mux(video.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        out.mux(video.encode(None))
