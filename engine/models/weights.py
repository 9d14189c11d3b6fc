"""Public weights to a running model: recognised, held against the model's own list, cut, converted.

`open_model` reads names and shapes alone and refuses what is not whole; `load_weights` then reads
every tensor once. A partial load does not exist. Knows nothing of decoders, sound or ranks' links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from engine.errors import EngineError
from engine.models.base import Progress
from engine.models.checkpoint.file_key import joint_key
from engine.models.checkpoint.fp8_cache import VERSION, Fp8Cache
from engine.models.checkpoint.recognise import Checkpoint, recognise
from engine.models.checkpoint.source import WeightSource
from engine.models.checkpoint.strict import require_exact
from engine.models.checkpoint.tensor_file import refused
from engine.models.dit_config import DitConfig, Shard, scheduled
from engine.models.dit_weights import DitWeights
from engine.models.wan_keys import config_of, wan_keys
from engine.models.wan_weights import build_weights


@dataclass(frozen=True, slots=True)
class Model:
    """A whole checkpoint and the configuration that runs it."""

    checkpoint: Checkpoint
    config: DitConfig
    schedule: str  # a key of `engine.models.schedules.SCHEDULES`
    distilled: bool  # for few steps; others need forty and make poor pictures in four

    @property
    def line(self) -> str:
        return self.checkpoint.line


def open_model(path: Path, lora: Path | None = None, schedule: str = "") -> Model:
    """What lies at `path` (folder or file), complete. `schedule` "" takes the layout's own.

    Raises EngineError("bad_checkpoint" or "missing_asset"), naming the first five tensors that are
    missing, unexpected or misshapen.
    """
    checkpoint = recognise(path, lora)
    config = _config(checkpoint)
    _require(checkpoint, config)
    own, distilled = schedule_of(checkpoint)
    chosen = schedule or own
    named = replace(scheduled(config, chosen), name=model_name(checkpoint))
    return Model(checkpoint, named, chosen, distilled or bool(schedule))


def _require(checkpoint: Checkpoint, config: DitConfig) -> None:
    keys = wan_keys(config)
    wanted = {name: spec.shape for name, spec in keys.items()}
    optional = {name for name, spec in keys.items() if spec.optional}
    where = checkpoint.tensors.path
    what = f"{where.parent.name}/{where.name} ({checkpoint.geometry.name})"
    require_exact(what, checkpoint.shapes, wanted, optional)


def _config(checkpoint: Checkpoint) -> DitConfig:
    path = checkpoint.tensors.path
    try:
        return config_of(checkpoint.shapes, checkpoint.geometry.heads)
    except EngineError as error:
        raise refused(path, error.message, error.hint) from error
    except (KeyError, IndexError, ValueError, ZeroDivisionError) as error:
        why = f"its tensors fit no known model ({error})"
        raise refused(path, why, "use a complete Wan-family model") from error


def model_name(checkpoint: Checkpoint) -> str:
    """The folder's or file's own name: what a person calls it."""
    return checkpoint.path.stem if checkpoint.path.is_file() else checkpoint.path.resolve().name


def schedule_of(checkpoint: Checkpoint) -> tuple[str, bool]:
    """(schedule, whether the model was distilled for it), from the layout."""
    speech, five = checkpoint.geometry.speech, checkpoint.geometry.out_channels == 48
    if speech:
        return "live-avatar", checkpoint.lora is not None
    if five:
        return "longlive-2", bool(checkpoint.tensors.branch) or checkpoint.lora is not None
    if checkpoint.tensors.branch == "generator_ema":
        return ("longlive" if checkpoint.lora else "self-forcing"), True
    if checkpoint.tensors.branch:
        return ("longlive" if checkpoint.lora else "causvid"), True
    if checkpoint.geometry.width >= 5120:
        return "krea", checkpoint.tensors.prefixed and not checkpoint.tensors.diffusers
    return "self-forcing", checkpoint.tensors.prefixed and not checkpoint.tensors.diffusers


def load_weights(
    model: Model, part: Shard, device: torch.device, dtype: torch.dtype, fp8: bool = False,
    cache_dir: Path | None = None, progress: Progress = lambda fraction, what: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> DitWeights:  # fmt: skip
    """One rank's weights on `device`. FP8 ones are kept below `cache_dir`, when given.

    Raises EngineError("cancelled"), or "bad_checkpoint" when a file changed under the reading.
    """
    checkpoint = model.checkpoint
    cache = _cache(model, part, cache_dir) if fp8 and cache_dir is not None else None
    source = WeightSource(checkpoint.tensors, checkpoint.lora, device, dtype, fp8, cache)
    source.watch(progress, cancelled)
    try:
        weights = build_weights(model.config, part, source)
        unread = set(checkpoint.shapes) - source.read
        if part.rank == 0 and unread:  # other ranks leave out biases that the first one adds
            raise EngineError("internal", f"{len(unread)} tensors were not used, {min(unread)}")
    except BaseException:
        if cache is not None:
            cache.abandon()
        raise
    if cache is not None:
        cache.finish()
    progress(1.0, cache.line if cache is not None else "weights read")
    return weights


def _cache(model: Model, part: Shard, folder: Path) -> Fp8Cache:
    """Keyed by the contents of every file that goes into the weights, and by the rank's part."""
    checkpoint, lora = model.checkpoint, model.checkpoint.lora
    files = [file.path for file in checkpoint.tensors.files]
    changes = [file.path for file in lora.tensors.files] if lora else []
    paths = list(dict.fromkeys(files + changes))
    scales = sorted({pair.scale for pair in lora.pairs.values()}) if lora else []
    key = joint_key(paths, VERSION, part, checkpoint.tensors.branch, scales)
    origin = hashlib.sha256(str(files[0].resolve()).encode()).hexdigest()[:8]
    count = len(checkpoint.shapes)
    return Fp8Cache(folder / "fp8", origin, key, f"{part.rank}of{part.ranks}", count)
