"""Runs read, resumed and named; progress lines; films by frame; the position in a clip."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError
from engine.qa import run_command
from engine.qa.clip_set import load_set
from engine.qa.jobs import Configuration
from engine.qa.run import Progress as EngineProgress
from engine.qa.run import plan
from engine.qa.run_folder import RunFolder
from studio.qa_film import read_film
from studio.qa_playback import AHEAD, Playback
from studio.qa_process import STOPPED, QaProcess, parse_progress, qa_command
from studio.qa_runs import all_sides, headline, new_folder, resume_arguments, sides_of
from studio.qa_set import read_set
from studio.qa_words import missed, result_words, run_words
from studio.sound_out import SoundOut
from tests.studio_ui.quality_runs import FRAMES, LENGTH_S, level, make_run, result, write_film


# --- runs ---
def test_a_run_is_read_as_it_grows(tmp_path):
    run = make_run(tmp_path / "First", {"a": 0.9, "b": None}, film=False)
    (side,) = sides_of(tmp_path / "First")
    assert side.name == "First" and list(side.refresh()) == [("a", 1)] and not side.is_complete
    run.store(run.run.jobs[1], result("b", 0.5, "portrait"))
    assert side.refresh()["b", 1].value("headline") == 0.5 and side.is_complete
    assert headline(side.refresh().values()) == pytest.approx(0.7)
    assert side.jobs[0].video == run.video_file(run.run.jobs[0])


def test_damaged_folders_are_left_out_and_half_a_result_is_none(tmp_path):
    run = make_run(tmp_path / "Good", {"a": 0.9}, film=False)
    run.result_file(run.run.jobs[0]).write_text("{", encoding="utf-8")
    for name, text in (("Torn", "{"), ("Odd", '{"jobs": [{"clip": 1}]}'), ("List", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text, encoding="utf-8")
    (side,) = all_sides(tmp_path)
    assert side.name == "Good" and side.refresh() == {}
    assert all_sides(tmp_path / "none") == []


@pytest.mark.parametrize(("name", "folder"), [
    ("Mouth: 2?", "Mouth  2"), ("../../etc", "etc"), ("", "Run"), ("a" * 90, "a" * 60),
])  # fmt: skip
def test_folders_are_safe_and_new(tmp_path, name, folder):
    first = new_folder(tmp_path, name)
    assert first.parent == tmp_path and first.name == folder
    first.mkdir()
    assert new_folder(tmp_path, name).name == f"{first.name} 2"


def test_resuming_asks_for_the_very_same_run(tmp_path):
    """What the window would ask for, read by the command, is the run that lies there."""
    clips = load_set(verify=False)
    some = clips.subset(ids=[c.id for c in clips.clips[:3]])
    made = [
        Configuration("wide", settings={"mouth": 1.25, "head": 0.5}),
        Configuration("loud", drive="loudness"),
    ]
    folder = tmp_path / "Two of them"
    wanted = plan(some, made, [1, 3], "abc", folder, "Two of them", keep_videos=False)
    RunFolder.open(folder, wanted)
    parser = argparse.ArgumentParser()
    run_command.add_options(parser)
    options = parser.parse_args(resume_arguments(folder))
    again = plan(
        run_command.clips_of(options), run_command.configurations_of(options),
        run_command.seeds_of(options.seeds), "abc", options.out, options.name,
        not options.no_videos,
    )  # fmt: skip
    assert again == wanted
    with pytest.raises(EngineError, match="cannot be resumed"):
        resume_arguments(tmp_path / "none")


def test_the_set_is_listed_and_filtered():
    clips = read_set()
    assert len(clips.clips) == 53 and "en" in clips.languages
    test = clips.matching("test", "en", "")
    assert test and all(c.split == "test" and c.language == "en" for c in test)
    assert read_set(Path("/nowhere")).clips == ()


# --- words ---
def test_words_of_results():
    good, bad = result("a", 0.9, "x"), result("b", 0.1, "x")
    assert missed(bad) == ["headline", "bilabial"] and result_words(bad) == (
        "score, p b m", "warning"
    )  # fmt: skip
    assert result_words(None) == ("Waiting", "faint")
    assert run_words([good], 1) == ("Lips fit the sound in 1 of 1 clips", "live")
    text, tone = run_words([good, bad], 3)
    assert text == "2 of 3 clips done · Lips fit the sound in 1 of 2 clips" and tone == "warning"


# --- the child ---
def test_progress_is_read_as_the_command_writes_it(tmp_path):
    run = make_run(tmp_path / "R", {"a": 0.62}, film=False)
    job = run.run.jobs[0]
    for left_s, left in ((45.4, "45 s left"), (1140.0, "19.0 min left")):
        line = run_command.said(EngineProgress(3, 53, 1, 2.13, left_s, job, run.results()[0]))
        found = parse_progress(line)
        assert found is not None
        assert (found.done, found.total, found.failed, found.rate) == (3, 53, 1, 2.1)
        assert found.left == left
    assert parse_progress("3 of 6, 2.0 a minute, 90 s left: x").failed == 0
    assert parse_progress("results in somewhere") is None


def child(qtbot, code: str, *arguments: str):
    process = QaProcess([sys.executable, "-c", code])
    with qtbot.waitSignal(process.ended, timeout=20_000) as told:
        process.start(arguments)
    return told.args


def test_a_child_answers_or_says_why_not(qtbot):
    status, out, why = child(qtbot, "print('{}'); raise SystemExit(1)")
    assert (status, out.strip(), why) == (1, "{}", ""), "1 is an answer, not a fault"
    code = "import sys; sys.stderr.write('avatar-qa: no set: reinstall'); sys.exit(2)"
    assert child(qtbot, code)[0::2] == [2, "no set: reinstall"]
    process = QaProcess(["/nowhere/avatar-qa"])
    with qtbot.waitSignal(process.ended, timeout=20_000) as told:
        process.start(["run"])
    assert "cannot be started" in told.args[2] and not process.is_running


def test_stopping_is_an_interrupt(qtbot):
    code = (
        "import sys, time, signal\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        "print('1 of 2, 3.0 a minute, 20 s left: x', file=sys.stderr, flush=True)\n"
        "time.sleep(60)"
    )
    process = QaProcess([sys.executable, "-c", code])
    with qtbot.waitSignal(process.progressed, timeout=20_000) as said:
        process.start([])
    assert said.args[0].done == 1 and process.is_running
    with qtbot.waitSignal(process.ended, timeout=20_000) as told:
        process.cancel()
    assert told.args[0] == STOPPED and told.args[2] == ""


def test_the_command_is_the_headless_one():
    assert qa_command()[-3:] == [sys.executable, "-m", "engine.qa"]


# --- films ---
def test_a_film_has_every_frame_at_its_time(tmp_path):
    write_film(tmp_path / "f.mp4")
    film = read_film(tmp_path / "f.mp4")
    assert len(film.frames) == FRAMES and film.end_s == pytest.approx(LENGTH_S)
    for index in (0, 1, 23, FRAMES - 1):
        assert film.index_at((index + 0.5) / 24) == film.index_at(index / 24) == index
        assert abs(int(film.frames[index][48, 32, 0]) - level(index)) <= 2
    assert film.index_at(-1) == 0 and film.index_at(99) == FRAMES - 1


def test_a_film_is_scaled_to_its_memory(tmp_path):
    write_film(tmp_path / "f.mp4")
    whole = FRAMES * 64 * 96 * 3
    film = read_film(tmp_path / "f.mp4", whole / 4)
    assert film.frames[0].shape == (48, 32, 3)


@pytest.mark.parametrize("content", [b"", b"not a film", b"\0" * 5000])
def test_hostile_films_are_one_line(tmp_path, content):
    (tmp_path / "x.mp4").write_bytes(content)
    with pytest.raises(EngineError) as told:
        read_film(tmp_path / "x.mp4")
    assert "\n" not in str(told.value) and "x.mp4" in str(told.value)


# --- position ---
class Sink:
    """Plays nothing: the test says what is heard."""

    def __init__(self) -> None:
        self.written: list[tuple[int, int]] = []
        self.heard: int | None = None
        self.waiting = 0

    def write(self, samples, first, following):
        assert len(samples) == following - first and samples.dtype == np.float32
        self.written.append((first, following))
        self.waiting += following - first

    def queued(self, now_ns):
        return self.waiting

    def position(self, now_ns):
        return self.heard

    def flush(self):
        self.waiting, self.heard = 0, None

    def close(self):
        self.closed = True


@pytest.fixture
def playback(qapp, tmp_path):
    write_film(tmp_path / "f.mp4")
    sink = Sink()
    sound = SoundOut("", lambda _: False, lambda: False)
    sound.sink = sink  # pyright: ignore[reportAttributeAccessIssue]
    sound.check = lambda now_ns: False
    made = Playback(lambda: sound)
    made.open(tmp_path / "f.mp4", LENGTH_S)
    made._timer.setInterval(10**6)
    yield made, sink
    made.close()


def test_playing_feeds_the_speaker_and_follows_it(playback):
    made, sink = playback
    seen: list[float] = []
    made.moved.connect(seen.append)
    made.play()
    made._timer.stop()
    made.tick(0)
    assert sink.written[0][0] == 0 and AHEAD <= sink.waiting < AHEAD + 960
    sink.heard = 24_000
    made.tick(0)
    assert made.seconds == 0.5 and seen[-1] == 0.5
    sink.heard = made.end
    made.tick(0)
    assert not made.is_playing and made.seconds == LENGTH_S


def test_a_loop_goes_round_and_a_step_stops(playback):
    made, sink = playback
    made.set_loop(1.0, 1.5)
    made.play()
    made._timer.stop()
    for _ in range(8):
        made.tick(0)
        sink.waiting = 0
    firsts = [first for first, _ in sink.written]
    assert min(firsts) == 48_000 and max(last for _, last in sink.written) == 72_000
    assert firsts.count(48_000) >= 2, "it came round"
    sink.heard = 49_000
    made.tick(0)
    made.step(1)
    assert not made.is_playing and made.seconds == pytest.approx(25 / 24)
    made.step(-1)
    assert made.seconds == pytest.approx(1.0)
    made.step(-999)
    assert made.seconds == 0.0


def test_it_begins_with_the_speaker_or_without_one_in_the_end(playback):
    made, _ = playback
    sound = SoundOut("", lambda _: False, lambda: False)
    sound.check = lambda now_ns: False
    made.close()
    made._make_sound = lambda: sound
    made.play()
    made._timer.stop()
    made.tick(0)
    assert sound.is_opening and made._written == 0, "waits for the speaker"
    made.tick(10**19)
    assert made._written == made.end > 0, "goes on in silence"
