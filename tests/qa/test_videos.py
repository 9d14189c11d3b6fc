"""Files from anywhere: times are kept, and what cannot be scored says why in one line."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from engine.audio_file import read_whole
from engine.motion.phone_track import Phone
from engine.qa.picture_checks import longest_still
from engine.qa.report import ClipResult
from engine.qa.score_clip import Labels, measure_video, score_video
from engine.qa.scores import Truth
from engine.qa.video_file import VideoFile
from tests.qa.conftest import needs_models, write_video

LABELS = Labels("clip", "scorer")


def scored(path: Path, truth: Truth | None = None) -> ClipResult:
    return score_video(path, truth, None, LABELS)


def failed(path: Path) -> str:
    result = scored(path)
    assert result.failed and "\n" not in result.failed and not result.scores
    assert result.clip == "clip" and result.video == path.name
    return result.failed


@needs_models
def test_a_sound_file_is_scored_without_phones(tmp_path, talking):
    result = scored(write_video(tmp_path / "a.mp4", talking))
    assert result.failed == "" and result.frames == 48 and result.fps == pytest.approx(24)
    assert result.range_source == "clip" and result.notes
    for name in ("faces_missing", "frame_count", "rate_error", "start_gap", "black_frames"):
        score = result.score(name)
        assert score is not None and score.value == pytest.approx(0, abs=0.6), name
        assert score.passed
    headline = result.score("headline")
    assert headline is not None and headline.value is None and headline.skipped == "no transcript"
    lse = result.score("lse_c")
    assert lse is not None and lse.value is None and "--syncnet" in lse.skipped


@needs_models
def test_only_timings_differ_between_reruns(tmp_path, talking):
    path = write_video(tmp_path / "a.mp4", talking)
    a, b = scored(path), scored(path)
    assert a.timings_ms and a.scores == b.scores and a.tracks == b.tracks


@needs_models
@pytest.mark.parametrize("fps", [25.0, 30.0])
def test_other_rates_are_re_timed_not_re_labelled(tmp_path, talking, fps):
    """The mouth opens every half second at 24 fps; shown faster it opens as much oftener."""
    measured, facts = measure_video(write_video(tmp_path / "a.mp4", talking, fps))
    assert facts.fps == pytest.approx(fps, rel=1e-3)
    assert measured.times_s == pytest.approx((np.arange(48) + 0.5) / fps, abs=2e-3)
    truth = Truth((Phone("AA", 0, 48 / fps),), read_whole(tmp_path / "a.mp4"))
    result = score_video(tmp_path / "a.mp4", truth, None, LABELS)
    assert result.tracks is not None
    seen = np.array(result.tracks.seen)
    assert len(seen) == round(48 / fps * 24)
    peaks = np.flatnonzero((seen[1:-1] > seen[:-2]) & (seen[1:-1] >= seen[2:]) & (seen[1:-1] > 0.7))
    assert np.median(np.diff(peaks)) == pytest.approx(12 * 24 / fps, abs=1)


@needs_models
def test_no_sound(tmp_path, talking):
    path = write_video(tmp_path / "a.mp4", talking, sound_s=0)
    assert "no audio stream" in failed(path)


@needs_models
def test_no_face(tmp_path):
    rng = np.random.default_rng(0)
    frames = [rng.integers(80, 120, (240, 320, 3)).astype(np.uint8) for _ in range(48)]
    assert "no face in any of 48 frames" in failed(write_video(tmp_path / "a.mp4", frames))


@needs_models
def test_ten_seconds_of_black(tmp_path):
    frames = [np.zeros((240, 320, 3), np.uint8)] * 240
    assert "240 of 240 frames are black" in failed(write_video(tmp_path / "a.mp4", frames))


@needs_models
def test_variable_rate(tmp_path, talking):
    starts = np.cumsum([0.0] + [0.03 if i % 3 else 0.12 for i in range(47)])
    path = write_video(tmp_path / "a.mkv", talking, starts_s=starts.tolist(), sound_s=3.0)
    assert "constant rate" in failed(path)


@needs_models
def test_truncated(tmp_path, talking):
    whole = write_video(tmp_path / "a.mkv", talking, sound_s=2.0).read_bytes()
    (tmp_path / "half.mkv").write_bytes(whole[: len(whole) // 2])
    truth = Truth(None, np.zeros(96_000, np.float32))
    result = score_video(tmp_path / "half.mkv", truth, None, LABELS)
    assert (result.failed and "s long" in result.failed) or "ends after" in result.failed
    mp4 = write_video(tmp_path / "b.mp4", talking).read_bytes()
    (tmp_path / "half.mp4").write_bytes(mp4[: len(mp4) // 2])
    assert "cannot be read as a video" in failed(tmp_path / "half.mp4")


def test_wrong_extension_and_no_video(tmp_path):
    (tmp_path / "text.mp4").write_text("not a film")
    assert "cannot be read as a video" in failed(tmp_path / "text.mp4")
    (tmp_path / "empty.mp4").touch()
    assert "is empty" in failed(tmp_path / "empty.mp4")
    assert "is not a file" in failed(tmp_path / "missing.mp4")
    picture = np.zeros((64, 64, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "picture.png"), picture)
    (tmp_path / "picture.png").rename(tmp_path / "picture.mp4")
    assert failed(tmp_path / "picture.mp4")


@needs_models
def test_short_and_frozen(tmp_path, talking):
    assert "at least 1.5 s" in failed(write_video(tmp_path / "a.mp4", talking[:20]))
    result = scored(write_video(tmp_path / "b.mp4", talking[:1] * 48))
    still, offset = result.score("longest_still"), result.score("ridge_offset")
    assert still is not None and (still.value or 0) > 30 and still.passed is False
    assert offset is not None and offset.value is None and "does not move" in offset.skipped


@needs_models
def test_a_moving_picture_is_not_still(tmp_path, talking):
    measured, _ = measure_video(write_video(tmp_path / "a.mp4", talking))
    assert longest_still(measured) == 0


@needs_models
def test_a_face_that_vanishes(tmp_path, talking):
    blank = [np.full_like(talking[0], 90)] * 3
    result = scored(write_video(tmp_path / "a.mp4", talking[:20] + blank + talking[20:]))
    missing = result.score("faces_missing")
    assert result.failed == "" and missing is not None and missing.value == 3
    assert missing.passed is False
    gone = [np.full_like(talking[0], 90)] * 30
    assert "no face in 30 of" in failed(write_video(tmp_path / "b.mp4", talking + gone))


def test_a_count_that_no_header_gives_is_zero(tmp_path):
    frames = [np.full((48, 64, 3), i, np.uint8) for i in range(40)]
    path = write_video(tmp_path / "a.mkv", frames)
    video = VideoFile(path)
    assert sum(1 for _ in video.frames()) == 40
    assert video.facts().said_frames == 0
    assert video.facts().fps == pytest.approx(24, rel=0.03)
