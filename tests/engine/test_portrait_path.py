"""The real model over the real wire: a picture and speech become a talking, then resting face."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from engine.audio_file import AudioFile
from engine.portrait.face_model import MESH, default_folder
from engine.protocol import messages as pm
from tests.engine.wire_client import EngineUnderTest, WireClient, states

ROOT = Path(__file__).resolve().parents[2]
FACES = ROOT.parent / "shared" / "data" / "portraits"
NEEDED = (default_folder() / MESH, ROOT / "assets/speech/encoder.safetensors", FACES)

pytestmark = pytest.mark.skipif(
    not all(path.exists() for path in NEEDED), reason="face model, speech weights or picture absent"
)


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    engine = EngineUnderTest(tmp_path_factory.mktemp("p"))
    client = WireClient(engine.ready)
    yield client
    client.close()
    assert engine.close() == 0


def speech(seconds):
    audio = AudioFile(ROOT / "assets/samples/welcome.flac")
    samples = np.concatenate(list(audio.pieces()))
    audio.close()
    return samples[: int(48_000 * seconds)]


def test_a_picture_is_inspected_and_talks(studio):
    picture = (FACES / "painting_vermeer.jpg").read_bytes()
    inspected = studio.ask(pm.InspectPicture(picture=picture))
    assert isinstance(inspected, pm.PictureInspected), inspected
    assert len(inspected.faces) == 1 and inspected.refusal == ""
    opened = studio.ask(pm.OpenSession(options={"frames_per_chunk": 1.0}))
    assert isinstance(opened, pm.SessionOpened), opened
    assert opened.frames_per_chunk == 1 and opened.lookahead_samples <= 3_840 + 2_000
    loaded = studio.ask(
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=picture)
    )
    assert isinstance(loaded, pm.CharacterLoaded), loaded
    started = studio.ask(pm.Start(session=opened.session))
    samples = speech(2.0)
    studio.speak(opened.session, started.epoch, started.first_sample, samples[:48_000])
    frames = studio.collect(lambda f, t: len(f) >= 20)
    studio.speak(
        opened.session, started.epoch, started.first_sample + 48_000, samples[48_000:], last=True
    )
    frames += studio.collect(
        lambda f, t: any(s.state == "COMPLETED" for s in states(t)), drain=True
    )
    assert [f.frame_index for f, _ in frames] == list(range(48))
    pictures = [f.pixels for f, _ in frames]
    assert all(p.shape == (1088, 704, 4) and (p[..., 3] == 255).all() for p in pictures)
    still = pictures[0].astype(int)
    assert max(np.abs(p.astype(int) - still).max() for p in pictures) > 60  # the mouth moves
    studio.ask(pm.CloseSession(session=opened.session))


def test_no_face_is_refused_in_one_line(studio):
    refused = studio.ask(pm.InspectPicture(picture=b"not a picture"))
    assert isinstance(refused, (pm.Failure, pm.PictureInspected))
    text = refused.message if isinstance(refused, pm.Failure) else refused.refusal
    assert text and "\n" not in text and "Traceback" not in text
    opened = studio.ask(pm.OpenSession())
    loaded = studio.ask(
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=b"junk")
    )
    assert isinstance(loaded, pm.Failure) and loaded.code == "bad_picture"
    studio.ask(pm.CloseSession(session=opened.session))


def test_a_muted_face_lives_on(studio):
    """Nobody sends audio at all: idle frames come at about 24 a second and are not frozen."""
    picture = (FACES / "painting_vermeer.jpg").read_bytes()
    opened = studio.ask(pm.OpenSession())
    studio.ask(pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=picture))
    studio.ask(pm.Start(session=opened.session))
    begun = time.monotonic()
    frames = studio.collect(lambda f, t: len(f) >= 30)
    assert time.monotonic() - begun > 1.0  # paced by the clock, not as fast as it goes
    assert all(f.idle for f, _ in frames)
    assert not np.array_equal(frames[0][0].pixels, frames[-1][0].pixels)
    studio.ask(pm.CloseSession(session=opened.session))
