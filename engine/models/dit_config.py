"""Geometry of the causal video Transformers, a frozen record a preset, and one rank's share of it.

Every variant is fields of one record: what a field turns off (0, empty, None) costs nothing.
Knows nothing of tensors. "avatar-57b" is an inferred geometry (the published system states only
57B, 704x1088 and 4 frames a step); "avatar-5b" is the public Wan2.2 TI2V-5B's, with sound beside
the text; the wan-* and s2v-* presets are public models as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.models.schedules import SCHEDULES, even

TIME_CHANNELS = 256  # sinusoid of the timestep


@dataclass(frozen=True, slots=True)
class Speech:
    """What Wan2.2-S2V adds: sound injected after some blocks, and condition tokens (see s2v.py)."""

    layers: tuple[int, ...]  # blocks after which sound is attended to
    tokens: int = 4  # learnt a latent frame; a padding token follows them
    features: int = 1024  # of the sound encoder (wav2vec2-large)
    states: int = 25  # hidden states of it, mixed by learnt weights
    pose_channels: int = 16  # of the latent that may steer the body; absent, its bias remains
    packs: tuple[int, ...] = (1, 2, 16)  # past latent frames kept at 1, 1/2 and 1/4 the size
    reference_at: int = 30  # latent frames from the chunk's first on to its picture, as trained
    # LiveAvatar: a chunk hears its own first feature as all its past; False hears what was
    sound_restarts: bool = True

    @property
    def context_tokens(self) -> int:
        """Keys that one latent frame attends to."""
        return self.tokens + 1

    @property
    def past_frames(self) -> int:
        """Latent frames that the packs hold."""
        return sum(self.packs)


@dataclass(frozen=True, slots=True)
class DitConfig:
    """One model. Counts are of the whole model; `shard` gives one rank's."""

    name: str
    width: int
    heads: int
    layers: int
    hidden: int  # of the feed-forward
    grid: tuple[int, int]  # tokens down and across one latent frame
    head_dim: int = 128
    latent_channels: int = 48  # of the video decoder
    patch: int = 2  # latent pixels a token, each way
    frames: int = 1  # latent frames a chunk
    pixel_frames: int = 4  # pictures a chunk
    text_tokens: int = 512
    audio_tokens: int = 16  # a chunk
    audio_features: int = 80  # log-mel bands
    ring_chunks: int = 7  # slots, the open chunk's included
    sink_frames: int = 1  # latent frames of the reference picture
    sink_reach: int = 7  # latent frames: the sink never looks further away than this
    steps: int = 4  # denoise forwards a chunk
    shift: float = 5.0  # of the flow schedule towards noise
    clean_pass: bool = False  # a forward on the finished chunk to store clean keys
    levels: tuple[float, ...] = ()  # noise of each step; empty: `steps` shifted by `shift`
    solver: str = "renoise"  # see schedules.py
    text_features: int = 0  # of the text encoder (umT5: 4,096); 0: text comes at the model's width
    image_tokens: int = 0  # of CLIP, attended to by keys of their own (Wan2.1 I2V)
    image_features: int = 1280
    joined_channels: int = 0  # mask and picture latents joined to the noisy ones (I2V: 4 + 16)
    speech: Speech | None = None
    native_fps: int = 24  # of the training pictures

    @property
    def tokens(self) -> int:
        """Of one chunk."""
        return self.frames * self.grid[0] * self.grid[1]

    @property
    def sink_tokens(self) -> int:
        """Of the reference picture; with sound injected, of all condition tokens."""
        picture = self.grid[0] * self.grid[1]
        if self.speech is None:
            return self.sink_frames * picture
        packs = zip(self.speech.packs, (1, 2, 4), strict=True)
        # upstream's convolutions drop the remainder of latent pixels
        down, across = self.grid[0] * self.patch, self.grid[1] * self.patch
        packed = [n // by * (down // (self.patch * by)) * (across // (self.patch * by))
                  for n, by in packs]  # fmt: skip
        return picture + sum(packed)

    @property
    def token_channels(self) -> int:
        """Out of the model."""
        return self.latent_channels * self.patch * self.patch

    @property
    def input_channels(self) -> int:
        """Into the model, a token."""
        return (self.latent_channels + self.joined_channels) * self.patch * self.patch

    @property
    def inner(self) -> int:
        """Width of attention, all heads."""
        return self.heads * self.head_dim

    @property
    def context_tokens(self) -> int:
        return self.text_tokens + self.audio_tokens

    @property
    def ring_rows(self) -> int:
        """Sink and slots, rounded up to 16 so that fp8 values transposed keep 16-byte rows."""
        rows = self.sink_tokens + self.ring_chunks * self.tokens
        return -(-rows // 16) * 16

    @property
    def parameters(self) -> int:
        """Of the blocks, which are all but a percent of the model."""
        attention = 8 * self.width * self.heads * self.head_dim
        return self.layers * (attention + 2 * self.width * self.hidden)

    @property
    def noise_levels(self) -> tuple[float, ...]:
        """Of the steps, 1 down."""
        return self.levels or even(self.steps, self.shift)

    @property
    def forwards(self) -> int:
        return self.steps + int(self.clean_pass)


@dataclass(frozen=True, slots=True)
class Shard:
    """What one tensor-parallel rank holds: some heads, some of the hidden width, padded to fit.

    Padding is zeros, which add nothing to any sum.
    """

    rank: int
    ranks: int
    heads: int
    hidden: int
    width: int  # heads * head_dim
    cross_heads: int  # of cross-attention's query and output
    cross_width: int

    @property
    def cross_by_rows(self) -> bool:
        """Cross-attention of this rank's rows with all heads: nothing crosses ranks for it."""
        return self.cross_heads != self.heads


def shard(config: DitConfig, rank: int = 0, ranks: int = 1, cross_rows: bool = False) -> Shard:
    """Raises EngineError for a rank outside 0..ranks-1, and for one that would have no head.

    `cross_rows`: cross-attention's query and output weights whole on every rank, which saves a
    third of all exchanges for 7 GB of fp8 weights over all but one rank at 57B.
    Heads that do not divide are padded: exact, because norms divide by the true width, and what
    makes seven ranks of 60 heads possible (nine each, six on the last: 5 % of padding).
    """
    if not 0 <= rank < ranks <= config.heads:
        raise EngineError(
            "bad_config",
            f"rank {rank} of {ranks} does not exist for {config.heads} heads",
            f"use a rank from 0 to ranks - 1, and at most {config.heads} ranks",
        )
    heads = -(-config.heads // ranks)
    if heads * (ranks - 1) >= config.heads:
        enough = -(-config.heads // heads)
        raise EngineError(
            "bad_config",
            f"{config.heads} heads over {ranks} ranks leave rank {ranks - 1} without any",
            f"{enough} ranks of {heads} heads are as fast: use {enough}",
        )
    hidden = -(-config.hidden // (16 * ranks)) * 16  # fp8 GEMMs take multiples of 16
    cross_heads = config.heads if cross_rows else heads
    width, cross_width = heads * config.head_dim, cross_heads * config.head_dim
    return Shard(rank, ranks, heads, hidden, width, cross_heads, cross_width)


def scheduled(config: DitConfig, schedule: str) -> DitConfig:
    """The model with a release's steps, chunk and window. Raises EngineError("bad_config")."""
    if schedule not in SCHEDULES:
        known = ", ".join(SCHEDULES)
        raise EngineError("bad_config", f"no schedule is called {schedule!r}", f"known are {known}")
    chosen = SCHEDULES[schedule]
    return replace(
        config, levels=chosen.levels, steps=len(chosen.levels), solver=chosen.solver,
        clean_pass=chosen.clean_pass, frames=chosen.frames, pixel_frames=4 * chosen.frames,
        ring_chunks=chosen.window_frames // chosen.frames, sink_reach=chosen.window_frames,
    )  # fmt: skip


def _wan(name: str, width: int, layers: int, hidden: int, schedule: str, fps: int) -> DitConfig:
    """A public model: 128 wide heads, text of umT5, no sound beside it."""
    config = DitConfig(
        name, width, width // 128, layers, hidden,
        # 3/4 of 704x1088, which is 8 % more than the 480x832 that the small ones were trained on
        grid=(51, 33), latent_channels=16, audio_tokens=0, text_features=4096, native_fps=fps,
    )  # fmt: skip
    return scheduled(config, schedule)


S2V_LAYERS = (0, 4, 8, 12, 16, 20, 24, 27, 30, 33, 36, 39)

PRESETS: dict[str, DitConfig] = {
    "avatar-57b": DitConfig("avatar-57b", 7680, 60, 60, 30_720, (34, 22)),
    "avatar-5b": DitConfig("avatar-5b", 3072, 24, 30, 14_336, (34, 22)),
    # latent 4 x 6 -> 64 x 96 px: everything the large ones have, in milliseconds on a CPU
    "tiny": DitConfig(
        "tiny", 96, 3, 2, 256, (3, 2), head_dim=32, latent_channels=8, text_tokens=5,
        audio_tokens=4, ring_chunks=3, sink_reach=3,
    ),
    "wan-1.3b": _wan("wan-1.3b", 1536, 30, 8960, "self-forcing", 16),
    "wan-14b": _wan("wan-14b", 5120, 40, 13_824, "krea", 16),
    "wan-5b": replace(
        _wan("wan-5b", 3072, 30, 14_336, "longlive-2", 24), grid=(34, 22), latent_channels=48
    ),
    # its condition tokens take the place of the sink: no frame of the clip lies in it
    "s2v-14b": replace(
        _wan("s2v-14b", 5120, 40, 13_824, "live-avatar", 25), sink_frames=0,
        speech=Speech(S2V_LAYERS),
    ),
}  # fmt: skip


def preset(name: str, **changes: int | float | bool) -> DitConfig:
    """A preset by name, with fields changed. Raises EngineError("unknown_model")."""
    if name not in PRESETS:
        known = ", ".join(PRESETS)
        raise EngineError("unknown_model", f"no model is called {name!r}", f"known are {known}")
    return replace(PRESETS[name], **changes)  # type: ignore[arg-type]
