"""`avatar-qa compare`: run folders in, words and exit status out."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.qa.compare_command import run
from engine.qa.jobs import FORMAT, Configuration, Job, RunFile
from engine.qa.limits import make_score
from engine.qa.report import ClipResult
from engine.qa.run_folder import RunFolder


def folder(path: Path, drops: dict[str, float], scorer: str = "s", done: bool = True) -> str:
    """A run of 12 clips whose headline lies below 0.8 by a configuration's drop."""
    jobs = [
        Job(f"clip{i:02d}", Configuration(name), 1, scorer, "a.flac", "mira", "mira.avatar")
        for name in drops
        for i in range(12)
    ]
    opened = RunFolder.open(
        path, RunFile(FORMAT, "r", "1.0", "h", scorer, {"headline": 0.05}, jobs)
    )
    for i, job in enumerate(jobs if done else []):
        drop = drops[job.configuration.name]
        value = 0.8 + 0.01 * (i % 12 % 5) - drop * (1 + 0.1 * (i % 3))
        opened.store(job, ClipResult(
            job.clip, scorer, configuration=job.configuration.name, seed=1,
            scores=[make_score("headline", value)],
        ))  # fmt: skip
    return str(path)


def compared(a: str, b: str, as_json: bool = False) -> int:
    return run(Namespace(a=a, b=b, json=as_json))


def test_words_and_status(tmp_path, capsys):
    a, b = folder(tmp_path / "a", {"new": 0.0}), folder(tmp_path / "b", {"bad": 0.2})
    assert compared(a, a) == 0
    assert capsys.readouterr().out.startswith("no worse within the margin: headline +0.000")
    assert compared(a, b) == 1
    assert capsys.readouterr().out.startswith("worse: headline -0.2")
    assert compared(a, b, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "worse" and (found["a"], found["b"]) == ("new", "bad")


def test_one_run_of_two_configurations(tmp_path):
    both = folder(tmp_path / "both", {"a": 0.0, "b": 0.2})
    assert compared(f"{both}:a", f"{both}:b") == 1
    with pytest.raises(EngineError, match="holds 2 configurations"):
        compared(both, both)
    with pytest.raises(EngineError, match="no configuration 'c'"):
        compared(f"{both}:c", both)


def test_what_cannot_be_compared(tmp_path):
    a = folder(tmp_path / "a", {"x": 0.0})
    with pytest.raises(EngineError, match="different scorers"):
        compared(a, folder(tmp_path / "b", {"x": 0.0}, scorer="t"))
    with pytest.raises(EngineError, match="holds no result yet"):
        compared(a, folder(tmp_path / "c", {"x": 0.0}, done=False))
    with pytest.raises(EngineError, match="holds no run"):
        compared(a, str(tmp_path / "nowhere"))
