"""The portrait model's two halves against the contracts, with the real encoder and renderer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.audio_file import AudioFile
from engine.clock import SAMPLES_PER_FRAME
from engine.errors import EngineError
from engine.models.base import Chunk, Latents
from engine.models.portrait import LOOKAHEAD_SAMPLES, PortraitDecoder, PortraitGenerator
from engine.portrait.coefficients import COUNT, INDEX

SAMPLE = Path(__file__).resolve().parents[2] / "assets" / "samples" / "lips.flac"


def quiet(fraction: float, what: str) -> None:
    assert 0 <= fraction <= 1
    assert what


@pytest.fixture(scope="module")
def voice() -> np.ndarray:
    """Three seconds of speech, 48 kHz."""
    file = AudioFile(SAMPLE)
    pcm = np.concatenate(list(file.pieces()))
    file.close()
    return pcm[: 4 * 48_000]


def chunks(pcm: np.ndarray, generator: PortraitGenerator, first_frame: int = 0) -> list[Chunk]:
    """The pieces that the engine would cut."""
    size = generator.frames_per_chunk
    step = size * SAMPLES_PER_FRAME
    first = step + generator.lookahead_samples
    edges = [0, *range(first, len(pcm) + 1, step)]
    return [
        Chunk(0, i, first_frame + i * size, size, pcm[edges[i] : edges[i + 1]])
        for i in range(len(edges) - 1)
    ]


def ready(frames_per_chunk: int = 1, **settings: float) -> PortraitGenerator:
    generator = PortraitGenerator(frames_per_chunk)
    generator.prepare(None, settings, quiet)
    return generator


def tokens_of(generator: PortraitGenerator, pcm: np.ndarray) -> np.ndarray:
    return np.concatenate([generator.step(chunk).values for chunk in chunks(pcm, generator)])


def test_lookahead_is_80_ms_from_the_frame_centre() -> None:
    assert LOOKAHEAD_SAMPLES == 2_840
    assert LOOKAHEAD_SAMPLES <= PortraitGenerator().lookahead_samples <= LOOKAHEAD_SAMPLES + 480


def test_one_frame_chunks_by_default_and_exact_counts(voice: np.ndarray) -> None:
    generator = ready()
    assert generator.frames_per_chunk == 1
    for chunk in chunks(voice, generator)[:20]:
        latents = generator.step(chunk)
        assert latents.values.shape == (1, COUNT)
        assert latents.values.dtype == np.float32
        assert (latents.first_frame, latents.frame_count) == (chunk.first_frame, 1)
        assert set(latents.stage_ms) == {"encode", "denoise"}


def test_chunk_sizes_do_not_matter(voice: np.ndarray) -> None:
    ones, eights = tokens_of(ready(1), voice), tokens_of(ready(8), voice)
    assert np.allclose(ones[: len(eights)], eights, atol=2e-4)


def test_speech_moves_the_mouth_and_silence_rests_it(voice: np.ndarray) -> None:
    spoken = tokens_of(ready(4), voice)
    assert spoken[:, INDEX["jawOpen"]].max() > 0.12
    assert spoken[:, INDEX["mouthClose"]].max() == 1
    silent = tokens_of(ready(4), np.zeros(2 * 48_000, np.float32))
    assert silent[:, INDEX["jawOpen"]].max() < 0.01


def test_reset_reproduces_bit_for_bit(voice: np.ndarray) -> None:
    generator = ready(4, seed=7)
    first = tokens_of(generator, voice)
    generator.reset()
    assert np.array_equal(tokens_of(generator, voice), first)


def test_interrupt_starts_a_new_stream_with_the_pose_kept(voice: np.ndarray) -> None:
    generator = ready()
    pieces = chunks(voice, generator)
    before = [generator.step(chunk).values[0] for chunk in pieces[:60]][-1]
    generator.interrupt()
    silent = chunks(np.zeros(48_000, np.float32), generator)
    after = [generator.step(chunk).values[0] for chunk in silent[:12]]
    assert abs(after[0][INDEX["headYaw"]] - before[INDEX["headYaw"]]) < 1
    assert after[-1][INDEX["jawOpen"]] < 0.01


def test_settings_act_live(voice: np.ndarray) -> None:
    generator = ready()
    pieces = chunks(voice, generator)
    for chunk in pieces[:30]:
        generator.step(chunk)
    generator.set_settings({"mouth": 0.0, "head": 0.0})
    values = generator.step(pieces[30]).values
    assert not values[:, [INDEX["jawOpen"], INDEX["headYaw"]]].any()


def test_a_chunk_of_the_wrong_length_is_refused(voice: np.ndarray) -> None:
    generator = ready()
    with pytest.raises(EngineError, match="gave 0 frames, not 1"):
        generator.step(Chunk(0, 0, 0, 1, voice[:1000]))


@pytest.mark.parametrize("count", [0, 25])
def test_frames_per_chunk_is_checked(count: int) -> None:
    with pytest.raises(EngineError, match="allowed 1 to 24"):
        PortraitGenerator(count)


def test_decoder_needs_a_character() -> None:
    latents = Latents(0, 0, 0, 1, np.zeros((1, COUNT), np.float32))
    with pytest.raises(EngineError, match="no character"):
        PortraitDecoder().decode(latents, [np.zeros((1088, 704, 4), np.uint8)])


def test_decoder_renders_each_token_into_its_own_frame(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hand-over alone; what a frame looks like is the renderer's own tests' business."""
    made: list[tuple[object, Path | None]] = []

    class Renderer:
        def __init__(self, canvas: object, cache_file: Path | None, progress: object) -> None:
            made.append((canvas, cache_file))

        def render(self, token: np.ndarray, out: np.ndarray) -> None:
            out[:] = int(100 * token[0])

    monkeypatch.setattr("engine.models.portrait.PortraitRenderer", Renderer)
    decoder = PortraitDecoder(tmp_path)
    character = SimpleNamespace(canvas=object(), key="abc")
    decoder.prepare(character, {}, quiet)
    assert made[0][0] is character.canvas
    assert str(made[0][1]).startswith(str(tmp_path))
    values = np.zeros((3, COUNT), np.float32)
    values[:, 0] = (0.1, 0.2, 0.3)
    frames = [np.zeros((4, 4, 4), np.uint8) for _ in range(3)]
    decoder.decode(Latents(0, 0, 0, 3, values), frames)
    assert [int(frame.max()) for frame in frames] == [10, 20, 30]
