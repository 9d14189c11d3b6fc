"""Builds the clips of one or all sources into a folder: `python -m engine.speech.corpus.build`.

About 40 CPU minutes for all. Sources whose packages are missing say so and are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from engine.speech.corpus import neural, recordings, synth
from engine.speech.corpus.align import Aligner, aligned_clip
from engine.speech.corpus.clip import Clip, save_clips
from engine.speech.corpus.texts import sentences

TEXTS_FOR_FESTIVAL = {"en": "en", "it": "it", "cs": "cs", "fi": "it", "ca": "es"}


def limited(clips: Iterable[Clip], minutes: float) -> list[Clip]:
    """Clips until their sum reaches `minutes`."""
    kept: list[Clip] = []
    total = 0.0
    for clip in clips:
        kept.append(clip)
        total += clip.seconds
        if total > minutes * 60:
            break
    return kept


def aligned(source: str, utterances: Iterable[recordings.Utterance]) -> Iterator[Clip]:
    """Utterances whose text could be aligned."""
    aligner = Aligner()
    for speaker, language, pcm, text in utterances:
        if (clip := aligned_clip(aligner, source, speaker, language, pcm, text)) is not None:
            yield clip


def espeak_clips(root: Path) -> Iterator[Clip]:
    """Random language, variant, rate and pitch for each sentence, seed 5."""
    from engine.speech.corpus.espeak import LANGUAGES, VARIANTS, Espeak

    speaker = Espeak()
    rng = np.random.default_rng(5)
    texts = {lang: sentences(root, lang) for lang in set(LANGUAGES.values())}
    names = list(LANGUAGES) + ["en-us"] * 3
    while True:
        language = names[rng.integers(len(names))]
        pool = texts[LANGUAGES[language]]
        voice = f"{language}+{VARIANTS[rng.integers(len(VARIANTS))]}"
        rate, pitch, span = (int(rng.integers(*r)) for r in ((130, 215), (25, 80), (30, 80)))
        if clip := speaker.speak(pool[rng.integers(len(pool))], voice, rate, pitch, span):
            yield clip


def sources(root: Path, libri: Path | None) -> dict[str, Callable[[], list[Clip]]]:
    """Name -> function that makes its clips."""
    english, held = sentences(root, "en"), sentences(root, "en", reserved=True)
    table: dict[str, Callable[[], list[Clip]]] = {
        "flite-kal16": lambda: limited(synth.flite("kal16", english), 16),
        "espeak": lambda: limited(espeak_clips(root), 60),
        **{
            f"flite-{v}": lambda v=v: limited(synth.flite(v, held), 10)
            for v in ("rms", "slt", "awb")
        },
        **{
            f"prompts-{lang}": lambda lang=lang: list(
                aligned("asterisk", recordings.prompts(root, lang))
            )
            for lang in ("en", "es", "fr", "it", "ru")
        },
        **{
            f"fillets-{lang}": lambda lang=lang, minutes=minutes: limited(
                aligned("fillets", recordings.game_dialogues(root, lang)), minutes
            )
            for lang, minutes in (("cs", 50), ("nl", 20))
        },
        "librivox": lambda: list(aligned("librivox", recordings.librivox(root))),
    }
    for i, (voice, language) in enumerate(synth.FESTIVAL_VOICES.items()):
        texts = sentences(root, TEXTS_FOR_FESTIVAL[language])
        part = texts[i * 40 % max(1, len(texts) - 300) :][:260]
        table[f"festival-{voice}"] = lambda v=voice, t=part: limited(synth.festival(v, t), 11)
    table["hibari"] = lambda: limited(aligned("hibari", neural.hibari(english[::-1][:420])), 18)
    table["kokoro"] = lambda: limited(
        aligned(
            "kokoro",
            neural.kokoro({lang: sentences(root, lang) for lang in ("en", "es", "fr", "it")}),
        ),
        20,
    )
    if libri is not None:
        table["librispeech"] = lambda: list(
            aligned("librispeech", recordings.librispeech(libri, libri / "texts.jsonl"))
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages lie")
    parser.add_argument("--libri", type=Path, help="folder of LibriSpeech clips and texts.jsonl")
    parser.add_argument("--only", default="", help="start of the sources' names")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, make in sources(arguments.root, arguments.libri).items():
        path = arguments.out / f"{name}.npz"
        if path.exists() or not name.startswith(arguments.only):
            continue
        clips = make()
        save_clips(path, clips)
        minutes = sum(c.seconds for c in clips) / 60
        sys.stdout.write(f"{name}: {len(clips)} clips, {minutes:.1f} min\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
