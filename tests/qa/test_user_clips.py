"""A user's folder: what is found, what is said of the rest, forced alignment where it can be."""

from __future__ import annotations

import importlib.util
import shutil

import av
import numpy as np
import pytest

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa import user_clips
from engine.qa.clip_set import load_set
from engine.qa.forced import forced_alignment
from engine.qa.user_clips import NO_TEXT, load_folder
from tests.qa.conftest import write_wav

aligner = pytest.mark.skipif(
    importlib.util.find_spec("pocketsphinx") is None, reason="pocketsphinx is not installed"
)


def tone(path, seconds=1.5):
    write_wav(path, np.sin(np.arange(int(48_000 * seconds)) / 20))


def test_clips_by_name_and_their_texts(tmp_path):
    tone(tmp_path / "b.wav")
    tone(tmp_path / "a.flac")
    (tmp_path / "notes.txt").write_text("no clip")
    found = load_folder(tmp_path)
    assert [c.id for c in found.clips] == ["a", "b"]
    for clip in found.clips:
        assert clip.split == "user"
        assert clip.alignment() is None
        assert clip.no_phones == NO_TEXT
        assert clip.samples == 72_000
        assert clip.character in found.characters


def test_the_hash_follows_the_folder(tmp_path):
    tone(tmp_path / "a.wav")
    first = load_folder(tmp_path).hash
    assert load_folder(tmp_path).hash == first
    (tmp_path / "a.txt").write_text("language: xx\n\n")
    assert load_folder(tmp_path).hash != first


def test_a_video_and_a_sound_of_one_name_are_two_clips(tmp_path):
    tone(tmp_path / "a.wav")
    (tmp_path / "a.mp4").write_bytes(b"nothing")
    found = {c.id: c for c in load_folder(tmp_path).clips}
    assert set(found) == {"a.wav", "a.mp4"}
    assert found["a.mp4"].video is not None
    assert found["a.mp4"].samples == 0
    assert "a.mp4" in found["a.mp4"].no_phones


@pytest.mark.parametrize("seconds", [0.5, 2.5])
def test_length_is_limited(tmp_path, seconds, monkeypatch):
    monkeypatch.setattr(user_clips, "LONGEST_S", 2.0)
    tone(tmp_path / "a.wav", seconds)
    clip = load_folder(tmp_path).clips[0]
    assert clip.no_phones == f"{seconds} s, allowed 1 to 2 s"


def film(path, sound=True):
    """Two seconds of grey with a tone; the container is MP4 whatever the name says."""
    with av.open(str(path), "w", format="mp4") as out:
        video = out.add_stream("libx264", rate=24)
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        audio = out.add_stream("aac", rate=48_000, layout="mono") if sound else None
        for _ in range(48):
            grey = np.full((64, 64, 3), 90, np.uint8)
            out.mux(video.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        out.mux(video.encode(None))
        if audio is not None:
            wave = np.sin(np.arange(96_000) / 20).astype(np.float32)[None]
            frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            frame.sample_rate = 48_000
            out.mux(audio.encode(frame))
            out.mux(audio.encode(None))


def test_a_film_with_a_sounds_name_is_not_taken_for_a_recording(tmp_path):
    film(tmp_path / "film.wav")
    tone(tmp_path / "sound.wav")
    found = {clip.id: clip for clip in load_folder(tmp_path).clips}
    assert found["film"].samples == 0, "so that the run reports it as failed"
    assert found["film"].no_phones == (
        "film.wav is a video: call it film.mp4 to have its own picture scored"
    )
    assert found["sound"].no_phones == NO_TEXT


def test_what_is_said_of_videos_speaks_of_videos(tmp_path):
    film(tmp_path / "silent.mp4", sound=False)
    (tmp_path / "text.mp4").write_text("no video " * 100)
    (tmp_path / "text.wav").write_text("no sound " * 100)
    said = {clip.source: clip.no_phones for clip in load_folder(tmp_path).clips}
    assert said["silent.mp4"].startswith("silent.mp4 has no audio stream: a video is scored from")
    assert (
        said["text.mp4"].startswith("text.mp4 cannot be read (") and "WAV" not in said["text.mp4"]
    )
    assert "choose a WAV" in said["text.wav"]


def test_bad_folders_are_one_line(tmp_path):
    with pytest.raises(EngineError, match="no folder"):
        load_folder(tmp_path / "no")
    with pytest.raises(EngineError, match="no clip"):
        load_folder(tmp_path)
    tone(tmp_path / "a.wav")
    with pytest.raises(EngineError, match="nobody"):
        load_folder(tmp_path, "nobody")


def test_without_the_aligner_a_text_is_not_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(user_clips, "unavailable", lambda language: f"no aligner for {language}")
    tone(tmp_path / "a.wav")
    (tmp_path / "a.txt").write_text("language: FR\nbonjour")
    clip = load_folder(tmp_path).clips[0]
    assert (clip.language, clip.text) == ("fr", "bonjour")
    assert clip.no_phones == "no aligner for fr"


@aligner
def test_a_shipped_clip_is_aligned_as_in_the_set(tmp_path):
    shipped = load_set(verify=False).subset(ids=["en-librivox-0920"]).clips[0]
    shutil.copy(shipped.audio, tmp_path / "a.flac")
    (tmp_path / "a.txt").write_text(shipped.text)
    clip = load_folder(tmp_path).clips[0]
    found, wanted = clip.alignment(), shipped.alignment()
    assert clip.no_phones == ""
    steps = np.arange(0, wanted.samples, 480)
    assert np.mean(found.at(steps) == wanted.at(steps)) > 0.98
    assert [w.text for w in found.words] == [w.text for w in wanted.words]


@aligner
def test_another_text_does_not_pass_for_what_is_said(tmp_path):
    shipped = load_set(verify=False).subset(ids=["en-allison-dir-nomore"]).clips[0]
    pcm = read_whole(shipped.audio)
    with pytest.raises(EngineError, match="does not fit"):
        forced_alignment(pcm, " ".join(["extraordinary circumstances"] * 12))
    with pytest.raises(EngineError, match="no words"):
        forced_alignment(pcm, "123 ...")


@aligner
def test_exact_times_are_found_by_force():
    """Independent truth: the synthesiser's own times (measured .89 .85 .83 .75 of the time)."""
    shares = []
    for clip in load_set(verify=False).clips:
        if clip.exact_times:
            truth = clip.alignment()
            found = forced_alignment(read_whole(clip.audio), clip.text)
            steps = np.arange(0, truth.samples, 480)
            shares.append(np.mean(found.at(steps) == truth.at(steps)))
            assert found.exact is False
    assert min(shares) > 0.7
    assert np.mean(shares) > 0.8
