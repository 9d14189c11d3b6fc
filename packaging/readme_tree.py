"""Writes the tree in README.md: each source file with the first sentence of its docstring.

`python packaging/readme_tree.py` rewrites the block between the two markers; `--check` only says
whether it is up to date (exit 1 when not). Knows nothing of what the files do.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- tree: packaging/readme_tree.py writes this -->", "<!-- end of tree -->"
PACKAGES = ("studio", "engine", "kernels")


def first_sentence(path: Path) -> str:
    """First sentence of a module's docstring, on one line, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?:\s|$)", paragraph)[0]


def folder_lines(folder: Path) -> list[str]:
    rows = []
    for path in sorted(folder.glob("*.py")):
        if path.name == "__init__.py" and not first_sentence(path):
            continue
        rows.append(f"| `{path.relative_to(ROOT)}` | {first_sentence(path)} |")
    return rows


def tree() -> str:
    blocks = []
    for package in PACKAGES:
        rows = folder_lines(ROOT / package)
        for folder in sorted(p for p in (ROOT / package).rglob("*") if p.is_dir()):
            if folder.name != "__pycache__":
                rows += folder_lines(folder)
        blocks.append(f"**{package}/**\n\n| file | what it is |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(blocks)


def with_tree(readme: str) -> str:
    head, rest = readme.split(START)
    _, tail = rest.split(END)
    return f"{head}{START}\n{tree()}\n{END}{tail}"


def main() -> int:
    path = ROOT / "README.md"
    old = path.read_text()
    new = with_tree(old)
    if "--check" in sys.argv:
        return int(old != new)
    path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
