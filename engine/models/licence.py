"""The licence of a model as its own files state it: README front matter, else the LICENSE text.

Repeats what is written there and flags what forbids commercial use. Is no legal advice, and does
not know licences that the files do not name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CARDS = ("README.md", "readme.md", "Readme.md", "MODEL_CARD.md")
TEXTS = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENSE.pdf", "NOTICE")
MAX_READ = 200_000  # characters of a file that are looked at
FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(\n|\Z)", re.DOTALL)
NON_COMMERCIAL = re.compile(
    r"(\bnc\b|-nc-|-nc$|non[- ]?commercial|research[- ](only|purposes only))", re.IGNORECASE
)
NAMES = {
    "apache-2.0": "Apache 2.0", "mit": "MIT", "cc-by-4.0": "CC BY 4.0",
    "cc-by-sa-4.0": "CC BY-SA 4.0", "cc-by-nc-4.0": "CC BY-NC 4.0",
    "cc-by-nc-sa-4.0": "CC BY-NC-SA 4.0",
    "cc-by-nc-nd-4.0": "CC BY-NC-ND 4.0", "openrail": "OpenRAIL", "bsd-3-clause": "BSD 3-Clause",
}  # fmt: skip
# How the texts of common licences begin; the first that is found within 3,000 characters counts.
OPENINGS: tuple[tuple[str, str], ...] = (
    (r"attribution-noncommercial-sharealike 4\.0", "cc-by-nc-sa-4.0"),
    (r"attribution-noncommercial-noderivatives 4\.0", "cc-by-nc-nd-4.0"),
    (r"attribution-noncommercial 4\.0", "cc-by-nc-4.0"),
    (r"attribution-sharealike 4\.0", "cc-by-sa-4.0"),
    (r"attribution 4\.0 international", "cc-by-4.0"),
    (r"apache license\s+version 2\.0", "apache-2.0"),
    (r"\bmit license\b", "mit"),
    (r"redistribution and use in source and binary forms", "bsd-3-clause"),
)


@dataclass(frozen=True, slots=True)
class Licence:
    """`name` is empty when no file states one."""

    name: str = ""
    stated_in: str = ""  # the file's name
    non_commercial: bool = False

    @property
    def line(self) -> str:
        """For people: `CC BY-NC-SA 4.0 (README.md): not for commercial use`."""
        if not self.name:
            return "not stated by its files: ask its publisher before use"
        note = ": not for commercial use" if self.non_commercial else ""
        return f"{self.name} ({self.stated_in}){note}"


def licence_of(folder: Path) -> Licence:
    """What the files of `folder` state; the model card comes before the licence's text."""
    for name in CARDS:
        if (found := _from_card(_text(folder / name))) is not None:
            return Licence(found[0], name, found[1])
    for name in TEXTS:
        if text := _text(folder / name):
            return _from_text(text, name)
    return Licence()


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_READ)
    except OSError:
        return ""


def _from_card(text: str) -> tuple[str, bool] | None:
    """(name, non-commercial) of the front matter's `license`, `license_name`."""
    front = FRONT.match(text.replace("\r\n", "\n"))
    if front is None:
        return None
    said = dict(re.findall(r"^(license(?:_name)?)\s*:\s*[\"'\[]?([^\"'\]\n#]+)", front[1], re.M))
    words = {key: value.strip() for key, value in said.items() if value.strip()}
    if not words:
        return None
    stated = words.get("license", "other")
    name = words.get("license_name", stated) if stated == "other" else stated
    known = NAMES.get(str(name).lower(), str(name))
    return known, NON_COMMERCIAL.search(f"{name} {known}") is not None


def _from_text(text: str, file: str) -> Licence:
    opening = " ".join(text[:3_000].lower().split())
    for pattern, key in OPENINGS:
        if re.search(pattern, opening):
            return Licence(NAMES[key], file, NON_COMMERCIAL.search(key) is not None)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return Licence(first[:60] or file, file, NON_COMMERCIAL.search(opening) is not None)
