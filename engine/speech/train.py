"""Trains the speech encoder: `avatar-engine train audio --shard FILE --out DIR`.

One run trains one seed; the learning rate follows the share of the time budget used, so that a run
always ends on time and fully annealed. Imports torch. Knows nothing of how a shard was made.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from engine.errors import EngineError
from engine.speech.augment import Batch, BatchMaker
from engine.speech.classes import CLOSED, LABIO, lip_index
from engine.speech.corpus.shard import load_shard
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONES
from engine.speech.train_net import TrainNet, save_weights

HEAD_WEIGHTS = (0.8, 1.4, 1.0, 0.7)  # -40, 0, +40, +80 ms
CLOSED_WEIGHT, LABIO_WEIGHT = 2.0, 2.5  # what viewers see most and what is learned last
LEAD_IN = 1  # steps at a crop's start that are not scored; a stream starts cold just so
WARM_UP = 200  # optimiser steps
RAMP = 0.35  # share of the run over which augmentation grows to full strength


@dataclass(frozen=True, slots=True)
class Plan:
    """One run's numbers."""

    minutes: float
    seed: int = 0
    width: int = 224
    batch: int = 192
    steps: int = 160  # 3.33 s
    rate: float = 2.5e-3
    decay: float = 0.01
    averaging: float = 0.999  # of the weights that are saved
    dropout: float = 0.15


class Loss:
    """Phone and lip cross-entropies of four heads, and the gate's."""

    def __init__(self, device: torch.device) -> None:
        lips = torch.as_tensor(lip_index(), device=device)
        self._lips = lips
        self._member = functional.one_hot(lips, 6).float()
        lip_weight = torch.ones(6, device=device)
        lip_weight[CLOSED], lip_weight[LABIO] = CLOSED_WEIGHT, LABIO_WEIGHT
        self._lip_weight, self._phone_weight = lip_weight, lip_weight[lips]

    def __call__(self, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """[batch, steps, OUTPUTS] logits -> scalar loss, [heads] lip accuracy."""
        logits = logits[:, LEAD_IN:].float()
        phones, speech = batch.phones[:, LEAD_IN:], batch.speech[:, LEAD_IN:]
        loss = 0.5 * functional.binary_cross_entropy_with_logits(logits[..., -1], speech)
        heads = logits[..., :-1].reshape(*phones.shape, len(PHONES)).log_softmax(-1)
        right = []
        for i, weight in enumerate(HEAD_WEIGHTS):
            log_p, truth = heads[:, :, i].flatten(0, 1), phones[:, :, i].flatten()
            lip_log_p = torch.log(log_p.exp() @ self._member + 1e-6)
            lip_truth = self._lips[truth]
            loss = loss + weight * (
                functional.nll_loss(log_p, truth, self._phone_weight)
                + 0.7 * functional.nll_loss(lip_log_p, lip_truth, self._lip_weight)
            )
            right.append((lip_log_p.argmax(-1) == lip_truth).float().mean())
        return loss / sum(HEAD_WEIGHTS), torch.stack(right)


class Trainer:
    """Net, optimiser and running average of one seed."""

    def __init__(self, shard: Path, plan: Plan, device: torch.device) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.device = plan, device
        self.batches = BatchMaker(load_shard(shard), device, plan.steps, plan.seed + 1)
        self.net = TrainNet(plan.width, plan.dropout).to(device)
        self.loss = Loss(device)
        self.optimiser = torch.optim.AdamW(
            self.net.parameters(),
            lr=plan.rate,
            weight_decay=plan.decay,
            betas=(0.9, 0.98),
            fused=device.type == "cuda",
        )
        self.average = {k: v.detach().clone() for k, v in self.net.state_dict().items()}
        self.done = 0

    def step(self, progress: float) -> tuple[Tensor, Tensor]:
        """One batch at `progress` 0..1 of the run."""
        rate = min(1, (self.done + 1) / WARM_UP) * (
            0.02 + 0.49 * (1 + math.cos(math.pi * progress))
        )
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate * rate
        batch = self.batches.draw(self.plan.batch, min(1.0, 0.25 + progress / RAMP))
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.net(batch.inputs)
        loss, right = self.loss(logits, batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 2.0)
        self.optimiser.step()
        self._follow()
        self.done += 1
        return loss.detach(), right.detach()

    def _follow(self) -> None:
        keep = min(self.plan.averaging, (self.done + 1) / (self.done + 10))
        state = self.net.state_dict()
        # One launch for all tensors; its public face is torch.optim.swa_utils, a module around it.
        lerp = torch._foreach_lerp_  # pyright: ignore[reportPrivateImportUsage]
        lerp(list(self.average.values()), list(state.values()), 1 - keep)

    @property
    def hours_heard(self) -> float:
        return self.done * self.plan.batch * self.plan.steps / 48 / 3600

    def save(self, path: Path, history: list[dict[str, float]]) -> None:
        """The averaged weights, and how they came to be."""
        notes = {
            **{k: str(v) for k, v in asdict(self.plan).items()},
            "optimiser_steps": str(self.done),
            "hours_heard": f"{self.hours_heard:.1f}",
            "heads_ms": str(HEAD_OFFSETS_MS),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "device": self.device.type,
            "last": json.dumps(history[-1] if history else {}),
        }
        save_weights(path, self.average, self.batches.mean, notes)


def run(shard: Path, out: Path, plan: Plan, device: torch.device, most_steps: int) -> Path:
    """Trains until the time or the steps are used up; saves on the way too.

    Returns:
        The weights' path.
    """
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(shard, plan, device)
    path, log = out / f"speech-seed{plan.seed}.safetensors", out / f"speech-seed{plan.seed}.json"
    history: list[dict[str, float]] = []
    sums: list[tuple[Tensor, Tensor]] = []
    began = time.monotonic()
    while trainer.done < most_steps:
        used = (time.monotonic() - began) / (plan.minutes * 60)
        progress = max(used, trainer.done / most_steps)
        if progress >= 1:
            break
        sums.append(trainer.step(progress))
        if len(sums) == 200:
            history.append(summary(sums, trainer, time.monotonic() - began))
            log.write_text(json.dumps({"plan": asdict(plan), "history": history}))
            say(json.dumps(history[-1]))
            sums.clear()
        if trainer.done % 2000 == 0:
            trainer.save(path, history)
    if sums:
        history.append(summary(sums, trainer, time.monotonic() - began))
    trainer.save(path, history)
    log.write_text(json.dumps({"plan": asdict(plan), "history": history}))
    return path


def summary(
    sums: list[tuple[Tensor, Tensor]], trainer: Trainer, seconds: float
) -> dict[str, float]:
    """Means since the last line."""
    loss = float(torch.stack([s[0] for s in sums]).mean())
    heads = torch.stack([s[1] for s in sums]).mean(0).tolist()
    return {
        "seed": trainer.plan.seed,
        "step": trainer.done,
        "seconds": round(seconds, 1),
        "hours": round(trainer.hours_heard, 1),
        "loss": round(loss, 4),
        **{f"lip{ms:+d}": round(a, 4) for ms, a in zip(HEAD_OFFSETS_MS, heads, strict=True)},
    }


def main(arguments: list[str] | None = None) -> None:
    """Command line of one seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", type=Path, required=True, help="made by corpus.pack")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--most-steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=224)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true", help="nothing to choose: lines are JSON")
    given = parser.parse_args(arguments)
    if not given.shard.exists():
        raise EngineError(
            "bad_input",
            f"There is no training shard {given.shard}.",
            "Build one: python -m engine.speech.corpus.build, then engine.speech.corpus.pack.",
        )
    plan = Plan(given.minutes, given.seed, given.width, given.batch, dropout=given.dropout)
    say(str(run(given.shard, given.out, plan, torch.device(given.device), given.most_steps)))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
