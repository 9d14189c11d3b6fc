"""Sentences to speak: dialogues of the fillets game and the prompt texts of asterisk.

Texts are reserved by hash for the held-out voices, so that no tested sentence is ever synthesised
for training. Knows nothing of audio. `root` is `/` where the Debian packages are installed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import numpy as np

PROMPT_VOICES = {
    "en": "en_US_f_Allison",
    "es": "es_MX_f_Allison",
    "fr": "fr_CA_f_June",
    "it": "it_IT_m_Carlo",
    "ru": "ru_RU_f_IvrvoiceRU",
}
_DIALOG = re.compile(
    r'dialogId\("([^"]+)",\s*"[^"]*",\s*"((?:[^"\\]|\\.)*)"\)\s*dialogStr\("((?:[^"\\]|\\.)*)"\)'
)


def words_of(text: str) -> list[str]:
    """Lower-case words, apostrophes kept."""
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.replace("’", "'").lower())


def is_reserved(text: str) -> bool:
    """True for the one text in ten that only held-out voices may speak."""
    return zlib.crc32(" ".join(words_of(text)).encode()) % 10 == 0


def prompt_texts(root: Path, language: str) -> dict[str, str]:
    """Asterisk prompt name -> what is said; notes in brackets are dropped."""
    path = root / f"usr/share/doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt.gz"
    raw = gzip.decompress(path.read_bytes())
    encoding = "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line and line[0] != ";")
    return {
        name.strip(): say.strip()
        for name, say in pairs
        if say.strip() and not re.search(r"[\[\]\d<>]", say)
    }


def dialogues(root: Path, language: str) -> dict[tuple[str, str], str]:
    """(level, dialogue id) -> text of the fillets game in one language."""
    out: dict[tuple[str, str], str] = {}
    scripts = root / "usr/share/games/fillets-ng/script"
    for path in sorted(scripts.glob(f"*/dialogs_{language}.lua")):
        for name, english, local in _DIALOG.findall(path.read_text("utf-8", errors="replace")):
            out[path.parent.name, name] = (local or english).replace("\\", "").strip()
    return out


def sentences(root: Path, language: str, reserved: bool = False) -> list[str]:
    """3 to 22 words each, shuffled with a fixed seed, no doubles."""
    source = list(prompt_texts(root, language).values()) if language in PROMPT_VOICES else []
    game = "en" if language == "en" else language
    if language in ("en", "cs", "nl"):
        source += english_dialogues(root) if game == "en" else list(dialogues(root, game).values())
    unique = {" ".join(words_of(t)): t for t in source if 3 <= len(words_of(t)) <= 22}
    kept = [t for t in unique.values() if is_reserved(t) == reserved and not re.search(r"\d", t)]
    order = np.random.default_rng(1).permutation(len(kept))
    return [kept[i] for i in order]


def english_dialogues(root: Path) -> list[str]:
    """The English half of every dialogue line."""
    out: list[str] = []
    for path in sorted((root / "usr/share/games/fillets-ng/script").glob("*/dialogs_en.lua")):
        text = path.read_text("utf-8", errors="replace")
        out += [m.group(2).replace("\\", "").strip() for m in _DIALOG.finditer(text)]
        out += re.findall(r'dialogId\("[^"]+",\s*"[^"]*",\s*"((?:[^"\\]|\\.)*)"\)', text)
    return out
