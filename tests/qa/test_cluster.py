"""`avatar-qa run --ray` over two real Ray nodes, one of which is killed in the middle of a clip."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest

from engine.qa import ray_door
from engine.qa.__main__ import run as avatar_qa
from engine.qa.ray_knock import QUIET
from engine.qa.run_folder import RunFolder
from engine.qa.tables import csv_text
from tests.qa.conftest import needs_models, write_video, write_wav

ROOT = Path(__file__).resolve().parents[2]
RAY = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
HOST = "127.0.0.2"  # the loopback; Ray puts this machine's outer address for 127.0.0.1
STORE = 80 << 20  # bytes of shared memory a node; Ray takes no less
FILMS = 5


@dataclass
class RayNode:
    process: subprocess.Popen
    cache: Path

    @property
    def works(self) -> bool:
        """A clip is being done there: its files lie in the node's cache."""
        return any(self.cache.glob("avatar-studio/cluster/*/tmp*"))

    def kill(self) -> None:
        """At once and all of it, as if the plug were pulled."""
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.process.pid)
            for process in [first, *first.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait(10)


def start_node(folder: Path, name: str, *words: str) -> RayNode:
    cache = folder / name
    settings = {
        **os.environ, **QUIET, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    command = [
        sys.executable, "-c", RAY, "start", "--block", "--num-cpus=1", "--disable-usage-stats",
        f"--object-store-memory={STORE}", f"--node-ip-address={HOST}", *words,
    ]  # fmt: skip
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=settings, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder
        )
    node, until = RayNode(process, cache), time.monotonic() + 90
    while "Ray runtime started" not in log.read_text():
        if process.poll() is not None or time.monotonic() > until:
            node.kill()
            pytest.fail(log.read_text())
        time.sleep(0.1)
    return node


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@pytest.fixture
def two_nodes() -> Iterator[tuple[str, RayNode, RayNode]]:
    """(address, first, second), one core each; on the loopback only."""
    pytest.importorskip("ray")
    if sys.platform != "linux":
        pytest.skip(f"{HOST} is no address here")
    folder = Path(tempfile.mkdtemp(prefix="ray"))  # a short path: Ray makes sockets below it
    port = free_port()
    address = f"{HOST}:{port}"
    started = []
    try:
        head = ["--head", f"--port={port}", f"--temp-dir={folder}", "--include-dashboard=false"]
        started.append(start_node(folder, "first", *head))
        started.append(start_node(folder, "second", f"--address={address}"))
        yield address, started[0], started[1]
    finally:
        for node in reversed(started):
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mine(tmp_path, talking) -> Path:
    """Finished films, one recording to be rendered, one damaged file."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for n in range(FILMS):
        write_video(folder / f"film{n}.mp4", talking[n:] + talking[: n + 24])
    write_wav(folder / "hum.wav", np.sin(np.arange(48_000 * 2) / 30))
    (folder / "broken.mp4").write_bytes(b"no film")
    return folder


def csv_of(folder: Path) -> str:
    return csv_text(RunFolder.existing(folder).results())


@needs_models
@pytest.mark.timeout(480)
def test_a_killed_node_loses_nothing_and_results_are_those_of_this_machine(
    two_nodes, mine, tmp_path
):
    address, _, second = two_nodes
    out, errors = tmp_path / "spread", tmp_path / "errors.txt"
    command = ["run", "--clips", str(mine), "--name", "n", "--json", "--out"]
    with errors.open("wb") as stderr:
        going = subprocess.Popen(
            [sys.executable, "-m", "engine.qa", *command, str(out), "--ray", address],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "head")}, cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + 90
        while not second.works:
            assert going.poll() is None and time.monotonic() < until, errors.read_text()
            time.sleep(0.01)
        second.kill()
        said, _ = going.communicate(timeout=240)
    finally:
        going.kill()
    assert going.returncode == 1, "broken.mp4 fails"
    told = errors.read_text()
    assert "goes to another" in told and "Traceback" not in told, told
    table = msgspec.json.decode(said)  # one object, and none of Ray's words
    assert table["clips"] == FILMS + 2 and [f["clip"] for f in table["failed"]] == ["broken"]
    assert f"{FILMS + 2} of {FILMS + 2}, 1 failed" in told

    local = [*command, str(tmp_path / "local")]
    assert avatar_qa(local, {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}) == 1
    assert csv_of(out) == csv_of(tmp_path / "local")
    films = [sorted((tmp_path / run / "videos").rglob("*.mp4")) for run in ("spread", "local")]
    assert len(films[0]) == 1
    assert [p.read_bytes() for p in films[0]] == [p.read_bytes() for p in films[1]]


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:70000", "ray://127.0.0.1:1", ":1"])
def test_no_address_is_one_line(tmp_path, capsys, address):
    assert refused(tmp_path, capsys, address) == f"avatar-qa: {address!r} is no address of a " + (
        "cluster: use HOST:PORT"
    )


def test_without_ray_the_remedy_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ray_door, "installed", lambda: False)
    assert "pip install 'avatar-studio[cluster]'" in refused(tmp_path, capsys, "127.0.0.1:6379")


def test_nobody_there_is_one_line(tmp_path, capsys):
    pytest.importorskip("ray")
    said = refused(tmp_path, capsys, f"{HOST}:{free_port()}", status=1)
    assert "no Ray cluster answers at" in said and "refused" in said


def test_somebody_who_does_not_answer_is_one_line(tmp_path, capsys, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_door, "ANSWER_S", 3.0)
    with socket.create_server((HOST, 0)) as mute:
        said = refused(tmp_path, capsys, f"{HOST}:{mute.getsockname()[1]}", status=1)
    assert "nothing in 3 s" in said


def test_video_models_are_not_spread(tmp_path, capsys):
    said = refused(tmp_path, capsys, "127.0.0.1:6379", "--model", "tiny")
    assert "'tiny' cannot be spread" in said


def refused(tmp_path: Path, capsys, address: str, *words: str, status: int = 2) -> str:
    """The one line of the refusal; no folder is left behind."""
    command = ["run", "--out", str(tmp_path / "run"), "--ray", address, *words]
    assert avatar_qa(command, {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}) == status
    assert not (tmp_path / "run").exists()
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line
