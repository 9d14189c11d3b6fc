"""Who must never reach training: the speakers and the language the encoder is scored on.

Enforced where shards are packed (`pack.add_clip` raises) and by a test.
"""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = frozenset({"ru"})
# Dev voices choose the seed and the closure factor: flite's rms and five readers of LibriSpeech's
# test-other. Test voices are reported: slt, awb, five other readers, pocketsphinx's LibriVox one.
LIBRISPEECH_DEV: Final = tuple(f"libri-{reader}" for reader in (1688, 1998, 2033, 2414, 2609))
LIBRISPEECH_TEST: Final = tuple(f"libri-{reader}" for reader in (3005, 3080, 3331, 367, 533))
DEV: Final = frozenset({"rms", *LIBRISPEECH_DEV})
TEST: Final = frozenset({"slt", "awb", "librivox-austen", *LIBRISPEECH_TEST})
SPEAKERS: Final = DEV | TEST


def may_train(speaker: str, language: str) -> bool:
    """False for a held-out speaker or language (a dialect such as ru-LV counts as its language)."""
    return speaker not in SPEAKERS and language.split("-")[0] not in LANGUAGES
