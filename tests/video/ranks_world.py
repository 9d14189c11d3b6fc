"""A world of ranks on a CPU: runs every case on 1 to 4 processes and writes what each rank got.

`python -m tests.video.ranks_world FOLDER [CHUNKS]`. The processes are forks of one that has
imported torch and started no thread, so that nine ranks cost one import.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import torch

from engine.errors import EngineError
from engine.models.causal_dit import Way
from engine.models.conditioning import SyntheticConditioning
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, Speech, preset, shard
from engine.models.dit_weights import synthetic_weights
from engine.parallel import PEER_BYTES, ManyRanks, Ranks, join
from engine.peak_memory import peak_resident
from engine.peer_linear import BestLinear, sharded_linear

CPU = torch.device("cpu")
PLAIN = Way(fp8=False)
UNFUSED = Way(fused_quantise=False, fused_elementwise=False)
WORLDS = (1, 2, 3, 4)

# A collective of gloo costs a millisecond and more: few steps and layers, a short ring.
SMALL = {"layers": 1, "steps": 2, "ring_chunks": 2}
# 7 heads and 200 hidden columns divide by none of 2, 3, 4; nor do 15 rows
ODD = preset("tiny", heads=7, hidden=200, grid=(5, 3), **SMALL)
# 6 rows over 4 ranks: the last has padding alone. The sink is smaller than a chunk.
EMPTY = preset("tiny", heads=8, grid=(2, 1), frames=3, clean_pass=True, **SMALL)

# sound injected after a block, condition tokens as the sink; 20 rows a frame, 3 frames, 3 heads
SOUND = replace(
    preset("tiny", frames=3, grid=(5, 4), audio_tokens=0, text_features=24, sink_frames=0, **SMALL),
    speech=Speech((0,), tokens=2, features=16, states=3), latent_channels=16, pixel_frames=12,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    config: DitConfig
    way: Way
    chunks: int = 2
    cross_rows: bool = False
    worlds: tuple[int, ...] = (1, 3)


CASES = {
    "wraps": Case(replace(ODD, layers=2), PLAIN, 8, worlds=WORLDS),
    "empty rank": Case(EMPTY, PLAIN, 3, worlds=(1, 2, 4)),
    "fp8": Case(ODD, Way(), worlds=WORLDS),
    "unfused": Case(ODD, replace(UNFUSED, fp8=False)),
    "ring attention": Case(ODD, replace(PLAIN, attention="ring")),
    "shift": Case(ODD, replace(PLAIN, cache="shift"), 4),
    "rerope": Case(EMPTY, replace(PLAIN, cache="rerope"), 4),
    "fp8 row": Case(EMPTY, Way(scale="row")),
    "fp8 unfused": Case(ODD, UNFUSED),
    "fp8 ring8": Case(ODD, Way(attention="ring8")),
    "sound": Case(SOUND, PLAIN, 3, worlds=(1, 2, 3)),
    "fp8 sound": Case(SOUND, Way(), worlds=(1, 2)),
    "sound, cross by rows": Case(SOUND, PLAIN, 2, True, (1, 2)),
    "two-shot": Case(EMPTY, replace(PLAIN, communication="two_shot"), 3, worlds=(1, 3, 4)),
    "fp8 fused": Case(ODD, Way(communication="fused"), worlds=WORLDS),
    "cross by rows": Case(ODD, PLAIN, 3, True, (1, 2, 3)),
    "cross by rows, empty rank": Case(EMPTY, PLAIN, 3, True, (1, 4)),
    "fp8 cross by rows": Case(ODD, Way(communication="fused"), 2, True, (1, 3)),
    "fp8 row cross by rows": Case(EMPTY, Way(scale="row"), 2, True, (1, 4)),
    "fp8 best": Case(ODD, Way(communication="best")),
    "fp8 row fused": Case(EMPTY, Way(scale="row", communication="fused")),
    "fp8 unfused, exchange fused": Case(ODD, replace(UNFUSED, communication="fused")),
}


def denoiser_of(config: DitConfig, way: Way, group: Ranks, cross_rows: bool = False) -> Denoiser:
    """Ready for chunks, with the same weights and inputs on every rank."""
    part = shard(config, group.rank, group.ranks, cross_rows)
    given = SyntheticConditioning(config)
    weights = given.weights(part, CPU, torch.float32, way.fp8, lambda done, what: None)
    denoiser = Denoiser(config, part, weights, way, CPU, torch.float32, ranks=group)
    source = torch.Generator().manual_seed(3)
    features = config.text_features or config.width
    text = torch.randn(config.text_tokens, features, generator=source)
    frames = 1 if config.speech else config.sink_frames
    tokens = frames * config.grid[0] * config.grid[1]
    picture = torch.randn(tokens, config.token_channels, generator=source)
    denoiser.prefill(text, picture)
    if way.fp8 and way.fused_quantise:
        denoiser.calibrate()
    return denoiser


def audio_of(config: DitConfig, count: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(4)
    shape = config.audio_tokens, config.audio_features
    if config.speech is not None:
        shape = config.speech.states, config.pixel_frames, config.speech.features
    return torch.randn(count, *shape, generator=source)


def latents(case: Case, group: Ranks) -> dict[str, np.ndarray]:
    """What every rank must agree on. The chunks at 1 and 5 are cut off half-way and begun again."""
    denoiser = denoiser_of(case.config, case.way, group, case.cross_rows)
    made = []
    for i, audio in enumerate(audio_of(case.config, case.chunks)):
        if i in (1, 5):
            cut_off(denoiser, -audio)
        made.append(denoiser.chunk(audio).clone())
    window = denoiser.cache.k.float()  # type: ignore[attr-defined]
    return {
        "latents": torch.stack(made).numpy(),
        "scales": denoiser.model.scales.values.numpy(),
        "finite": window.isfinite().all().numpy(),
    }


def cut_off(denoiser: Denoiser, audio: torch.Tensor) -> None:
    """Half a chunk, then the interruption: on every rank at the same place."""
    with torch.inference_mode():
        denoiser.cache.begin()
        denoiser.hear(audio)
        denoiser.forward(0)
    denoiser.rollback()


def all_cases(group: Ranks) -> dict[str, np.ndarray]:
    found = {}
    for name, case in CASES.items():
        if group.ranks in case.worlds:
            for key, value in latents(case, group).items():
                found[f"{name}/{key}"] = value
    return found | loading(group) | refusals(group)


def refusals(group: Ranks) -> dict[str, np.ndarray]:
    """What a group says to a second group in its process and to memory it never mapped."""
    said = []
    for wrong in (
        lambda: join(group.rank, group.ranks, CPU, "nowhere", 0.1),
        lambda: group.peer_buffer(PEER_BYTES + (1 << 20)),
    ):
        try:
            wrong()
            said.append("")
        except EngineError as error:
            said.append(str(error))
    return {"refusals": np.array(said), "without peers": np.array(without_peers(group))}


def without_peers(group: Ranks) -> str:
    """The exchange that "best" comes to when one rank alone cannot share memory."""

    part = shard(ODD, group.rank, group.ranks)
    if isinstance(group, ManyRanks):
        group._peers, mapped = None, group._shared

        def refuse(count: int) -> list[torch.Tensor]:
            mapped(count)
            raise OSError(12, "no room to map it")

        if group.rank == 1:
            group._shared = refuse  # type: ignore[method-assign]
    return sharded_linear(group, ODD, part, "best", torch.float32).way


def resident_bytes(peak: bool = False) -> int:
    if peak:
        return peak_resident()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def loading(group: Ranks) -> dict[str, np.ndarray]:
    """Bytes held at most while one rank's weights are made, of the weights, of the largest tensor
    and of the whole model.
    """
    config = preset("tiny", width=512, heads=8, head_dim=64, hidden=2048, layers=8)
    before = resident_bytes()
    part = shard(config, group.rank, group.ranks)
    weights = synthetic_weights(config, part, CPU, torch.float32)
    peak = resident_bytes(peak=True) - before
    largest, whole = 4 * 6 * config.width**2, 4 * config.parameters  # the timestep's projection
    return {"loading": np.array([peak, bytes_of(weights), largest, whole])}


def bytes_of(record: object) -> int:
    """Of all tensors in a record of records."""
    if isinstance(record, torch.Tensor):
        return record.numel() * record.element_size()
    if isinstance(record, list | tuple):
        return sum(bytes_of(part) for part in record)
    if is_dataclass(record):
        return sum(bytes_of(getattr(record, field.name)) for field in fields(record))
    return 0


def talk(group: Ranks, chunks: int) -> dict[str, np.ndarray]:
    """Utterances of 50 lengths, cut off or silent at times; resident bytes after each tenth."""
    config = replace(ODD, steps=1)
    denoiser = denoiser_of(config, PLAIN, group)
    audio = audio_of(config, 50)
    resident, done, utterance = [], 0, 0
    while done < chunks:
        for i in range(min(1 + utterance % 50, chunks - done)):
            denoiser.chunk(torch.zeros_like(audio[0]) if utterance % 3 == 2 else audio[i])
            done += 1
            if done % max(1, chunks // 10) == 0:
                resident.append(resident_bytes())
        utterance += 1
        if utterance % 5 == 0:
            cut_off(denoiser, audio[0])
        if utterance % 20 == 0:
            denoiser.reset()
    return {"resident": np.array(resident), "done": np.array(done)}


def _be(rank: int, ranks: int, folder: Path, work: Callable[[Ranks], dict[str, np.ndarray]]) -> int:
    try:
        group = join(rank, ranks, CPU, str(folder / f"meeting{ranks}"), 20.0)
        found = work(group)
        group.barrier()
        group.close()
        np.savez(folder / f"world{ranks}_rank{rank}.npz", **found)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def world(
    ranks: int, folder: Path, work: Callable[[Ranks], dict[str, np.ndarray]], seconds: float
) -> int:
    """Fork the ranks and wait for them; those left when time is over or one failed are ended."""
    children: list[int] = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            os._exit(_be(rank, ranks, folder, work))
        children.append(child)
    until, bad = time.monotonic() + seconds, 0
    while children and not bad and time.monotonic() < until:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.remove(child)
            bad |= status
        else:
            time.sleep(0.02)
    if children and not bad:
        sys.stderr.write(f"{len(children)} of {ranks} ranks still ran after {seconds:g} s\n")
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return 1 if bad or children else 0


def main() -> int:
    torch.set_num_threads(1)
    # qkv of the small model by itself, the others within one kernel
    BestLinear.fused_gather_flops = BestLinear.fused_scatter_flops = 4e5
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        chunks = int(sys.argv[2])
        return world(2, folder, lambda group: talk(group, chunks), 60 + chunks / 5)
    return max(world(ranks, folder, all_cases, 60) for ranks in WORLDS)


if __name__ == "__main__":
    sys.exit(main())
