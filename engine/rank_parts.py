"""What a rank does when it is called: `DenoisePart` hosts a Generator, `DecodePart` a Decoder.

Rank 0 runs the same `DenoisePart` on a thread that the others run in processes. All calls of a part
come from one thread. Knows nothing of links or processes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import rank_messages as rm
from engine.framebus import FrameBus
from engine.models.base import Chunk, Decoder, Latents, Progress
from engine.rank_handover import LatentsBuffer


@dataclass(frozen=True, slots=True)
class SentCanvas:
    pixels: np.ndarray  # [H, W, 4] uint8 BGRA


@dataclass(frozen=True, slots=True)
class SentCharacter:
    """As much of a Character as travels to the ranks."""

    canvas: SentCanvas


def sent_character(message: rm.Prepare) -> SentCharacter:
    pixels = np.frombuffer(message.pixels, np.uint8)
    return SentCharacter(SentCanvas(pixels.reshape(message.height, message.width, 4)))


def use_device(device: str) -> Any:
    """The torch.device of "cuda:2" or "cpu", current for this thread from now on."""
    import torch

    chosen = torch.device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    else:
        torch.set_num_threads(1)  # ranks share the cores
    return chosen


class Part:
    """Dispatch by the name that a call carries."""

    def act(self, body: rm.Body, progress: Progress) -> Any:
        name = str(body.__struct_config__.tag)
        method = getattr(self, name)
        return method(body, progress) if name == "prepare" else method(body)


class DenoisePart(Part):
    """A generator that has other ranks beside it: one with `join` (see `VideoGenerator`)."""

    def __init__(self, generator: Any, device: str, decodes_here: bool) -> None:
        self.generator: Any = generator
        self._device, self._decodes_here = device, decodes_here
        self._ranks: Any = None

    def join(self, message: rm.Join) -> None:
        from engine.parallel import join

        device = use_device(self._device)
        self._ranks = join(message.rank, message.ranks, device, message.meeting, message.timeout_s)
        self.generator.join(self._ranks, self._decodes_here)

    def prepare(self, message: rm.Prepare, progress: Progress) -> None:
        self.generator.prepare(sent_character(message), message.settings, progress)

    def step(self, message: rm.Step) -> Latents:
        pcm = np.frombuffer(message.pcm, np.float32)
        return self.generator.step(
            Chunk(message.epoch, message.index, message.first_frame, message.frame_count, pcm)
        )

    def set_settings(self, message: rm.SetSettings) -> None:
        self.generator.set_settings(message.settings)

    def interrupt(self, message: rm.Interrupt) -> None:
        self.generator.interrupt()

    def reset(self, message: rm.Reset) -> None:
        self.generator.reset()

    def close(self, message: rm.Close) -> None:
        self.generator = None  # graphs that captured collectives go before the group does
        if self._ranks is not None:
            self._ranks.close()


class DecodePart(Part):
    """A decoder whose latents come through `places` and whose pictures go into `bus`."""

    def __init__(self, decoder: Decoder, device: str, bus: FrameBus, places: LatentsBuffer) -> None:
        self._decoder, self._device = decoder, device
        self._bus, self._places = bus, places

    def prepare(self, message: rm.Prepare, progress: Progress) -> None:
        use_device(self._device)
        self._decoder.prepare(sent_character(message), message.settings, progress)

    def decode(self, message: rm.Decode) -> dict[str, float]:
        begun = time.perf_counter()
        values: Any = self._places.view(message.place, message.shape, message.dtype)
        if message.is_torch:
            import torch

            values = torch.from_numpy(values).to(self._device)
        latents = Latents(
            message.epoch, message.chunk_index, message.first_frame, message.frame_count, values
        )
        self._decoder.decode(latents, [self._bus.view(slot) for slot in message.slots])
        return {"decode": 1000 * (time.perf_counter() - begun)}

    def set_settings(self, message: rm.SetSettings) -> None:
        self._decoder.set_settings(message.settings)

    def reset(self, message: rm.Reset) -> None:
        self._decoder.reset()

    def close(self, message: rm.Close) -> None:
        pass
