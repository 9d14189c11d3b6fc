"""How far each fast way strays from full precision, with the same noise: per layer and over chunks.

`python -m engine.bench_accuracy --model avatar-57b --of 3 --layers 4 --chunks 100`. Synthetic
weights, so errors are of arithmetic, not of what a person would see. Knows nothing of speed.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.bench_video import PEERS, conditioning
from engine.errors import first_line
from engine.fp8 import Activation
from engine.machine import describe, say
from engine.models.causal_dit import Way
from engine.models.denoiser import Denoiser
from engine.models.dit_config import DitConfig, Shard, preset, shard
from engine.models.dit_weights import synthetic_weights
from engine.parallel import rows_of

TRUTH = replace(PEERS, cache="ring")
# name -> way; all against TRUTH: full-precision weights, plain torch, the same ring
WAYS: dict[str, Way] = {
    "rerope, full precision": PEERS,
    "shift, full precision": replace(PEERS, cache="shift"),
    "fused, full precision": Way(fp8=False),
    "fp8, unfused, a scale a row": replace(TRUTH, fp8=True),
    "fp8, fused, a scale a row": Way(scale="row"),
    "fp8, fused, static scales": Way(),
    "fp8, fused, our attention": Way(attention="ring"),
    "fp8, fused, fp8 attention": Way(attention="ring8"),
}


def build(config: DitConfig, part: Shard, way: Way, device: torch.device) -> Denoiser:
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    weights = synthetic_weights(config, part, device, dtype, way.fp8)
    denoiser = Denoiser(config, part, weights, way, device, dtype)
    text, reference, _ = conditioning(config, device)
    denoiser.prefill(text, reference)
    if way.fp8 and way.fused_quantise:
        denoiser.calibrate()
    return denoiser


@torch.inference_mode()
def layer_states(denoiser: Denoiser, latent: Tensor) -> list[Tensor]:
    """The residual stream after each block of one forward of the first chunk."""
    model, states = denoiser.model, []
    denoiser.cache.begin()
    model.set_step(denoiser._steps[0])
    rows = rows_of(model._ranks, latent.shape[0])
    x, y = model.buffers.x[: rows.share], model.buffers.y[: rows.share]
    model._linear(Activation(latent), model.weights.patch_in, x)
    pending: tuple[Tensor | None, Tensor | None] = (None, None)
    for layer in range(model.config.layers):
        added, gate = pending = model._block(layer, x, y, pending, rows)
        states.append(x.float() + added.float() * gate)
    denoiser.rollback()
    denoiser.reset()
    return states


def chunks_of(denoiser: Denoiser, chunks: int) -> list[Tensor]:
    """Clean latents of `chunks` chunks with audio that differs from chunk to chunk."""
    config, source = denoiser.config, torch.Generator(denoiser.device).manual_seed(4)
    made = []
    for _ in range(chunks):
        shape = (config.audio_tokens, config.audio_features)
        audio = torch.randn(shape, generator=source, device=denoiser.device)
        made.append(denoiser.chunk(audio).clone())
    return made


def relative(got: Tensor, want: Tensor) -> float:
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


def bench(model: str, ranks: int, layers: int, chunks: int) -> dict[str, Any]:
    """Errors of every way. Layers 0 keeps the model's own."""
    config = preset(model, layers=layers) if layers else preset(model)
    part = shard(config, 0, ranks)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    source = torch.Generator(device).manual_seed(9)
    shape = (config.tokens, config.token_channels)
    truth = build(config, part, TRUTH, device)
    latent = torch.randn(shape, generator=source, device=device).to(truth.latent.dtype)
    want_states, want = layer_states(truth, latent), chunks_of(truth, chunks)
    rows = []
    for name, way in WAYS.items():
        try:
            denoiser = build(config, part, way, device)
            states = layer_states(denoiser, latent)
            drift = [relative(a, b) for a, b in zip(chunks_of(denoiser, chunks), want, strict=True)]
        except RuntimeError as error:
            rows.append({"way": name, "failed": first_line(error)})
            continue
        per_layer = [relative(a, b) for a, b in zip(states, want_states, strict=True)]
        tenth = max(1, chunks // 10)
        rows.append({
            "way": name, "error_per_layer": per_layer, "error_first_chunk": drift[0],
            "error_first_tenth": sum(drift[:tenth]) / tenth,
            "error_last_tenth": sum(drift[-tenth:]) / tenth, "error_worst": max(drift),
        })  # fmt: skip
        say(str(rows[-1]))
    return describe(device) | {
        "model": model, "weights": "synthetic", "ranks": ranks, "layers": config.layers,
        "chunks": chunks, "wraps": chunks / config.ring_chunks, "rows": rows,
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="engine.bench_accuracy", description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--of", type=int, default=1, dest="ranks")
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=100)
    args = parser.parse_args(argv)
    report = bench(args.model, args.ranks, args.layers, args.chunks)
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
