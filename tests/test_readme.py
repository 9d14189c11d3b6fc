"""The README's tree names every source file with its own first sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_tree_is_true() -> None:
    command = [sys.executable, str(ROOT / "packaging" / "readme_tree.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, "run `python packaging/readme_tree.py`" + done.stderr


def test_every_path_named_exists() -> None:
    text = (ROOT / "README.md").read_text()
    paths = re.findall(r"`((?:studio|engine|kernels|assets|tests|packaging)/[\w./-]+)`", text)
    linked = re.findall(r"\]\(((?!http)[\w./-]+)\)", text)
    missing = [p for p in {*paths, *linked} if not (ROOT / p).exists()]
    assert not missing, missing
