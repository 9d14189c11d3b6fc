"""Scores weights, and the peers beside them, on voices and a language never trained on.

`python -m engine.speech.evaluate --clips DIR --root / --weights FILE --out FILE.json [--peers DIR]`
Thresholds are chosen on the dev voice (rms) alone. Knows nothing of training.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import soxr

from engine.clock import SAMPLE_RATE
from engine.speech import peers
from engine.speech.classes import REST, lip_classes
from engine.speech.corpus.clip import Clip, load_clips
from engine.speech.corpus.held_out import DEV, TEST, may_train
from engine.speech.corpus.noise import (
    TEST_MUSIC,
    TEST_SOUNDS,
    at_level,
    babble,
    coloured,
    excerpts,
)
from engine.speech.cost import cost_ms
from engine.speech.encoded import HEAD_OFFSETS_MS, EncodedSpeech
from engine.speech.encoder import SpeechEncoder, encode_all
from engine.speech.resample import ENCODER_RATE
from engine.speech.score import Marked, Score, open_share, score

HEAD_NOW = HEAD_OFFSETS_MS.index(0)
SPEAKING = 0.5  # of the gate
FACTORS = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
MOST_CLIPS = 80
DEV_SETS = ("rms (dev)", "5 readers (dev)")
Heard = tuple[Clip, EncodedSpeech]
Shower = Callable[[Clip], np.ndarray]  # clip -> lip classes shown


def held_out_sets(folder: Path) -> dict[str, list[Clip]]:
    """Name -> clips, none of them by a trained voice."""
    files = {
        "rms (dev)": "flite-rms",
        "5 readers (dev)": "librispeech",
        "slt": "flite-slt",
        "awb": "flite-awb",
        "5 readers": "librispeech",
        "librivox": "librivox",
        "ru": "prompts-ru",
    }
    out: dict[str, list[Clip]] = {}
    for name, file in files.items():
        path = folder / f"{file}.npz"
        clips = list(load_clips(path)) if path.exists() else []
        wanted = DEV if name in DEV_SETS else TEST
        clips = [c for c in clips if c.speaker in wanted or c.language == "ru"]
        clips = clips[:: max(1, len(clips) // MOST_CLIPS)][:MOST_CLIPS]
        assert not any(may_train(c.speaker, c.language) for c in clips), name
        if clips:
            out[name] = clips
    return out


def heard(clip: Clip, weights: Path) -> EncodedSpeech:
    """The live encoder over a whole clip."""
    return encode_all(soxr.resample(clip.pcm, ENCODER_RATE, SAMPLE_RATE), weights)


def marked(clip: Clip, shown: np.ndarray) -> Marked:
    """Cut to the clip's whole frames."""
    return Marked(clip.phones, shown[: int(clip.seconds * 24)])


def encoder_score(heard_clips: list[Heard], factor: float, head: int = HEAD_NOW) -> Score:
    """Ungated classes of one head; heads of another instant are compared with that instant."""
    shift = HEAD_OFFSETS_MS[head] / 1000
    rows = []
    for clip, said in heard_clips:
        shown = lip_classes(said.posteriors[:, head], factor)
        moved = [(p, a - shift, b - shift) for p, a, b in clip.phones]
        rows.append(Marked(moved, shown[: int(clip.seconds * 24)]))
    return score(rows)


def noisy(clip: Clip, noise: np.ndarray, snr_db: float) -> Clip:
    """Noise at an SNR against the clip's active parts."""
    power = clip.pcm**2
    active = power[np.convolve(power, np.ones(600) / 600, "same") > 1e-4 * power.max()].mean()
    level = np.sqrt(active) * 10 ** (-snr_db / 20)
    pcm = 0.5 * (clip.pcm + at_level(np.resize(noise, len(clip.pcm)), level))
    return Clip(clip.source, clip.speaker, clip.language, pcm, clip.phones, clip.text)


def non_speech(root: Path) -> dict[str, list[np.ndarray]]:
    """Sounds at which the mouth should stay shut; none of the recordings was trained on."""
    rng = np.random.default_rng(9)
    white, pink = coloured(rng, 20, 0), coloured(rng, 20, 1)
    t = np.arange(len(pink)) / ENCODER_RATE
    pulse = (1 + 0.9 * np.sin(2 * np.pi * 4 * t)).astype(np.float32)
    return {
        "digital silence": [np.zeros(20 * ENCODER_RATE, np.float32)],
        "white -60 dBFS": [at_level(white, 1e-3)],
        "white -30 dBFS": [at_level(white, 0.0316)],
        "pink -45 dBFS": [at_level(pink, 5.6e-3)],
        "pink -25 dBFS": [at_level(pink, 0.056)],
        "pink pulsing at 4 Hz": [at_level(pink * pulse, 0.0316)],
        "music": [at_level(x, 0.056) for x in excerpts(root, (TEST_MUSIC,), 20, 12)],
        "game sounds": [at_level(x, 0.056) for x in excerpts(root, (TEST_SOUNDS,), 3, 40)],
    }


def opening(sounds: list[np.ndarray], weights: Path, factor: float) -> dict[str, float]:
    """Share of frames opened, after half a second, without and with the gate."""
    bare, gated = [], []
    for pcm in sounds:
        said = encode_all(soxr.resample(pcm, ENCODER_RATE, SAMPLE_RATE), weights)
        shown = lip_classes(said.posteriors[:, HEAD_NOW], factor)
        bare.append(shown[12:])
        gated.append(np.where(said.speech > SPEAKING, shown, REST)[12:])
    return {"ungated": open_share(np.concatenate(bare)), "gated": open_share(np.concatenate(gated))}


def chosen_factor(
    sets: dict[str, list[Heard]],
) -> tuple[float, float, dict[str, dict[str, float]]]:
    """On the dev voices alone: the factor of the best closure F1, the seed's merit, the curve.

    Merit = accuracy + closure F1 at that factor; the seed of the highest merit is shipped.
    """
    dev = [pair for name in DEV_SETS for pair in sets[name]]
    curve: dict[str, dict[str, float]] = {}
    best, most = 1.0, -1.0
    for factor in FACTORS:
        s = encoder_score(dev, factor)
        curve[str(factor)] = asdict(s)
        f1 = 2 * s.closure_recall * s.closure_precision / (s.closure_recall + s.closure_precision)
        if f1 > most:
            best, most = factor, f1
    return best, most + curve[str(best)]["accuracy"], curve


def gate_verdict(heard_clips: list[Heard]) -> float:
    """Share of spoken frames that the gate lets through."""
    passed = []
    for clip, said in heard_clips:
        count = int(clip.seconds * 24)
        times = (np.arange(count) + 0.5) / 24
        spoken = np.zeros(count, bool)
        for phone, start, end in clip.phones:
            spoken |= (times >= start) & (times < end) & (phone != "SIL")
        passed.append(said.speech[:count][spoken] > SPEAKING)
    return float(np.mean(np.concatenate(passed)))


def evaluate(weights: Path, clips: Path, root: Path, quick: bool) -> dict[str, object]:
    """Everything about one weights file."""
    sets = {n: hear_all(cs, weights) for n, cs in held_out_sets(clips).items()}
    factor, merit, curve = chosen_factor(sets)
    report: dict[str, object] = {
        "weights": weights.name,
        "notes": SpeechEncoder(weights).notes,
        "factor": factor,
        "merit": merit,
        "dev_curve": curve,
        "cost": cost_ms(weights),
        "clean": {n: asdict(encoder_score(c, factor)) for n, c in sets.items()},
        "open": {n: opening(s, weights, factor) for n, s in non_speech(root).items()},
        "gate_passes_speech": {n: gate_verdict(c) for n, c in sets.items()},
        "heads": {
            f"{ms:+d} ms": {n: asdict(encoder_score(c, factor, i)) for n, c in sets.items()}
            for i, ms in enumerate(HEAD_OFFSETS_MS)
        },
    }
    return report if quick else report | in_noise(weights, held_out_sets(clips), factor)


def hear_all(clips: list[Clip], weights: Path) -> list[Heard]:
    """Each clip with what the encoder said of it."""
    return [(clip, heard(clip, weights)) for clip in clips]


def in_noise(weights: Path, sets: dict[str, list[Clip]], factor: float) -> dict[str, object]:
    """Test voices in white noise and in a crowd of the held-out language, at 15 and 5 dB."""
    rng = np.random.default_rng(4)
    crowd = babble(rng, sets.get("ru", sets["slt"]), 30, 8)
    report: dict[str, object] = {}
    for kind, noise in (("white", coloured(rng, 30, 0)), ("babble", crowd)):
        for snr in (15, 5):
            report[f"{kind} {snr} dB"] = {
                name: asdict(
                    encoder_score(
                        hear_all([noisy(c, noise, snr) for c in cs[:40]], weights), factor
                    )
                )
                for name, cs in sets.items()
                if name not in DEV_SETS
            }
    return report


def evaluate_peers(
    clips: Path, tools: Path, seconds: float, weights: Path
) -> dict[str, dict[str, object]]:
    """The open peers and ours on the same clips, `seconds` of each test set."""
    sets = {n: limited(cs, seconds) for n, cs in held_out_sets(clips).items() if n not in DEV_SETS}
    showers: dict[str, Shower] = {
        "ours (80 ms look-ahead)": lambda clip: lip_classes(
            heard(clip, weights).posteriors[:, HEAD_NOW]
        ),
        **peers.available(tools),
    }
    out: dict[str, dict[str, object]] = {}
    for name, show in showers.items():
        rows = {n: asdict(score([marked(c, show(c)) for c in cs])) for n, cs in sets.items()}
        out[name] = dict(rows)
        sys.stdout.write(
            f"{name}: " + ", ".join(f"{n} {r['accuracy']:.3f}" for n, r in rows.items()) + "\n"
        )
        sys.stdout.flush()
    return out


def limited(clips: list[Clip], seconds: float) -> list[Clip]:
    """The first clips, until `seconds` are reached."""
    total = np.cumsum([c.seconds for c in clips])
    return clips[: int(np.searchsorted(total, seconds)) + 1]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=Path, required=True, help="made by corpus.build")
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--weights", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--peers", type=Path, help="folder with the peers' node_modules")
    parser.add_argument("--peer-seconds", type=float, default=60, help="of each set for the peers")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    report: dict[str, object] = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "command": " ".join(sys.argv),
        "runs": [evaluate(w, given.clips, given.root, given.quick) for w in given.weights],
    }
    if given.peers:
        report["peers"] = evaluate_peers(
            given.clips, given.peers, given.peer_seconds, given.weights[-1]
        )
    given.out.write_text(json.dumps(report, indent=1))
    for run in report["runs"]:  # type: ignore[attr-defined]
        sys.stdout.write(table(run) + "\n")


def table(run: dict[str, object]) -> str:
    """One run's main numbers as text."""
    lines = [f"{run['weights']} factor {run['factor']} merit {run['merit']:.4f} cost {run['cost']}"]
    for name, s in run["clean"].items():  # type: ignore[attr-defined]
        lines.append(
            f"{name:12} acc {s['accuracy']:.3f} ({s['low']:.3f}-{s['high']:.3f}) "
            f"k {s['kappa']:.2f} closures {s['closure_recall']:.2f}/{s['closure_precision']:.2f} "
            f"fv {s['labio_recall']:.2f} "
            f"pause {s['pause_open']:.3f} lag {s['lag_ms']:+d} n{s['clips']} c{s['closures']}"
        )
    for name, o in run["open"].items():  # type: ignore[attr-defined]
        lines.append(f"{name:22} open {o['ungated']:.3f} gated {o['gated']:.3f}")
    lines.append(f"gate passes speech {run['gate_passes_speech']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
