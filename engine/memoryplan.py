"""Every byte a session of a preset needs on one GPU, worked out from the configuration alone.

Knows nothing of CUDA: a session that does not fit is refused by arithmetic before it allocates.
Workspace and graph pools are rounded up from what was measured (see BENCHMARKS.md beside this).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import EngineError
from engine.models.causal_dit import Way
from engine.models.dit_config import DitConfig, Shard
from engine.parallel import PEER_BYTES
from engine.ringcache import CacheLayout

GIB = 1 << 30
CUDA_CONTEXT = int(0.6 * GIB)  # driver, cuBLAS and cuDNN handles and workspaces
GRAPH_POOL = int(0.5 * GIB)  # attention outputs and cuDNN's scratch within captured graphs


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by part, on each of `ranks` GPUs."""

    preset: str
    ranks: int
    parts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def sentence(self) -> str:
        """What `doctor`, `bench` and a refusal say."""
        where = "one GPU" if self.ranks == 1 else f"each of {self.ranks} GPUs"
        return f"{self.preset} needs {self.total / GIB:.1f} GiB on {where}"

    def require(self, free_bytes: int) -> None:
        """Raises EngineError("out_of_memory") when it does not fit."""
        if self.total > free_bytes:
            raise EngineError(
                "out_of_memory",
                f"{self.sentence()}, {free_bytes / GIB:.1f} GiB are free",
                "use more GPUs, a smaller model or close what else uses the GPU",
            )


def plan(config: DitConfig, part: Shard, way: Way, decoder_bytes: int = 0) -> MemoryPlan:
    """Of one rank; `decoder_bytes` when the video decoder shares the GPU."""
    weight_bytes = 1 if way.fp8 else 2
    columns = 4 * part.width + 2 * part.cross_width + 2 * part.hidden
    matrix = config.layers * config.width * columns
    context_kv = config.layers * 2 * part.width * config.width
    channels = config.token_channels + config.input_channels
    embeddings = 2 * config.width * (channels + 8 * config.width + config.text_features + 400)
    modulation = 4 * (config.forwards + 2) * config.layers * 6 * config.width
    parts = {
        "weights": weight_bytes * (matrix + context_kv) + embeddings,
        "window": _window_bytes(config, part, way),
        "context": 4 * config.layers * config.context_tokens * part.cross_width,
        "modulation": modulation + 4 * config.layers * 8 * config.width,
        "buffers": _buffer_bytes(config, part, way),
        "exchange": _exchange_bytes(config, part, way),
        # the timestep's projection in full precision, while it is worked out before a session
        "preparation": 4 * 6 * config.width**2,
        "graphs": GRAPH_POOL,
        "cuda": CUDA_CONTEXT,
    }
    if config.speech is not None:
        parts["sound"] = _sound_bytes(config, part, weight_bytes)
    if decoder_bytes:
        parts["decoder"] = decoder_bytes
    return MemoryPlan(config.name, part.ranks, parts)


def _sound_bytes(config: DitConfig, part: Shard, weight_bytes: int) -> int:
    """What S2V adds: injections, the norms that sound modulates, its encoder, condition tokens."""
    assert config.speech is not None
    speech, width = config.speech, config.width
    places = len(speech.layers)
    attention = places * 4 * part.width * width * weight_bytes
    norms = places * 2 * width * width * 2
    packs = 2 * width * config.token_channels * (1 + 8 + 64)
    encoder = 4 * (3 * speech.features * width * (speech.tokens + 1) // 4 + 4 * width * width)
    tokens = config.tokens * width * 2 + config.sink_tokens * width * (4 + 2)
    return attention + norms + packs + encoder + tokens


def _window_bytes(config: DitConfig, part: Shard, way: Way) -> int:
    layout = CacheLayout.of(config, part)
    cell = 1 if way.attention == "ring8" else 2
    sink = config.layers * layout.sink_tokens * part.width * 2
    return 2 * layout.elements * cell + sink


def _buffer_bytes(config: DitConfig, part: Shard, way: Way) -> int:
    rows = max(config.tokens, config.sink_tokens)
    small = 1 if way.fp8 and way.fused_quantise else 2
    wide = 3 * 2 * config.width + small * config.width + 2 * config.token_channels
    cut = (6 + 4 + 2 + small + 1) * part.width + (2 + small) * part.hidden
    context = config.audio_tokens + config.text_tokens
    return rows * (wide + cut) + context * config.layers * 2 * part.width * 2


def _exchange_bytes(config: DitConfig, part: Shard, way: Way) -> int:
    """Rows gathered or to be summed, in two types, and what ranks write into of each other's."""
    if part.ranks == 1:
        return 0
    rows = max(config.tokens, config.sink_tokens) + part.ranks
    peers = 0 if way.communication == "collective" else PEER_BYTES
    return rows * config.width * 3 + peers
