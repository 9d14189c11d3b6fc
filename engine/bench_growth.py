"""Does a session ever take more memory than at its start? Many lengths, silences, interruptions.

`python -m engine.bench_growth --model tiny --chunks 10000`. The published system lost its best
optimisation for two months to buffers that grew with varying audio length. Knows nothing of speed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np

from engine.bench_complete import any_character, memory, speech_like
from engine.clock import SAMPLES_PER_FRAME
from engine.machine import describe, say
from engine.models.base import Chunk
from engine.models.video import VideoDecoder, VideoGenerator, preset_decoder, preset_generator

SAMPLES = 4 * SAMPLES_PER_FRAME


class Talk:
    """Utterance after utterance of 50 lengths: speech, silence, and cut off in mid-chunk."""

    def __init__(self, generator: VideoGenerator, decoder: VideoDecoder | None) -> None:
        self.generator, self.decoder = generator, decoder
        self.done = self.utterances = self.interruptions = 0
        self._source = np.random.default_rng(50)
        self._frames = [np.empty((1088, 704, 4), np.uint8) for _ in range(4)]

    def utterance(self, chunks: int) -> None:
        """`chunks` chunks; every third is silent, every fifth utterance ends in an interruption."""
        silent = self.utterances % 3 == 2
        for i in range(chunks):
            pcm = np.zeros(SAMPLES, np.float32) if silent else speech_like(i, SAMPLES)
            latents = self.generator.step(Chunk(self.utterances, i, 4 * i, 4, pcm))
            if self.decoder is not None:
                self.decoder.decode(latents, self._frames)
        self.done += chunks
        self.utterances += 1
        if self.utterances % 5 == 0:
            self._interrupt()

    def _interrupt(self) -> None:
        denoiser = self.generator.denoiser
        assert denoiser is not None, "prepared"
        denoiser.cache.begin()
        denoiser.forward(0)  # half a chunk: its slot is dirty
        self.generator.interrupt()
        self.interruptions += 1
        if self.interruptions % 4 == 0:
            self.generator.reset()


def bench(model: str, chunks: int, layers: int = 0, with_decoder: bool = True) -> dict[str, Any]:
    """Memory at the start of a session and after `chunks` chunks of 50 utterance lengths."""
    generator = preset_generator(model, synthetic=1, layers=layers)
    decoder = preset_decoder(model) if with_decoder else None
    for part in filter(None, (generator, decoder)):
        part.prepare(any_character(), {}, lambda done, what: None)
    talk = Talk(generator, decoder)
    lengths = [1 + 3 * i for i in range(50)]
    before, begun = memory(generator.device), time.perf_counter()
    while talk.done < chunks:
        left = chunks - talk.done
        talk.utterance(min(left, lengths[talk.utterances % 50]))
    after = memory(generator.device)
    return describe(generator.device) | {
        "model": model, "weights": "synthetic", "layers": generator.config.layers,
        "chunks": talk.done, "utterances": talk.utterances, "lengths": len(lengths),
        "interruptions": talk.interruptions, "with_decoder": with_decoder,
        "seconds": time.perf_counter() - begun, "at_start_bytes": before,
        "growth_bytes": {k: after[k] - before[k] for k in after},
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="engine.bench_growth", description=__doc__)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--layers", type=int, default=0, help="fewer layers than the model has")
    parser.add_argument("--no-decoder", action="store_true")
    args = parser.parse_args(argv)
    report = bench(args.model, args.chunks, args.layers, not args.no_decoder)
    sys.stdout.write(json.dumps(report) + "\n")
    grown = any(report["growth_bytes"].values())
    say(f"{report['chunks']} chunks, {'memory grew' if grown else 'no byte of growth'}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
