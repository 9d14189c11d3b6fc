"""Who must never reach training: the speakers and the language the encoder is scored on.

Enforced where shards are packed (`pack.add_clip` raises) and by a test.
"""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = frozenset({"ru"})
# flite's rms is the dev voice (thresholds are set on it); slt and awb are reported.
# The ten readers are LibriSpeech test-other's; austen is pocketsphinx's LibriVox reader.
LIBRISPEECH_TEST: Final = tuple(
    f"libri-{reader}" for reader in (1688, 1998, 2033, 2414, 2609, 3005, 3080, 3331, 367, 533)
)
SPEAKERS: Final = frozenset({"rms", "slt", "awb", "librivox-austen", *LIBRISPEECH_TEST})


def may_train(speaker: str, language: str) -> bool:
    """False for a held-out speaker or language (a dialect such as ru-LV counts as its language)."""
    return speaker not in SPEAKERS and language.split("-")[0] not in LANGUAGES
