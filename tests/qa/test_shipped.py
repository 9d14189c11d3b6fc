"""Files of a job as bytes: packed once, laid out elsewhere, reasons told in paths of home."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.portrait.face_model import DETECTOR, MESH, default_folder
from engine.qa import shipped
from engine.qa.cluster_node import NodeWorker, sweep
from engine.qa.jobs import Configuration, Job
from engine.qa.report import ClipResult
from engine.qa.shipped import Kit, Shipment, Store, at_home, lay_task, lay_tools
from engine.qa.workers import Task, Tools, do_task, start_bench
from tests.qa.conftest import needs_models, write_video, write_wav

ROOT = Path(__file__).resolve().parents[2]
MIRA = ROOT / "assets" / "characters" / "mira.avatar"


def job(folder: Path, **fields) -> Job:
    known = dict(
        clip="c", configuration=Configuration("a"), seed=1, scorer="s", audio=str(folder / "c.wav"),
        character="mira", character_file=str(folder / "mira.avatar"),
    )  # fmt: skip
    return Job(**(known | fields))


@pytest.fixture
def home(tmp_path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "c.wav").write_bytes(b"sound")
    (folder / "c.json").write_bytes(b"phones")
    (folder / "mira.avatar").write_bytes(b"face")
    return folder


def sent(task: Task, store: Store) -> tuple[Shipment, list[bytes]]:
    told, contents = shipped.pack_task(task, store)
    return msgspec.json.decode(told, type=Shipment), contents


def test_what_is_laid_there_is_what_was_here(home, tmp_path):
    mine = job(home, alignment=str(home / "c.json"))
    task = Task(mine, str(tmp_path / "run" / "c.mp4"))
    shipment, contents = sent(task, Store(lambda data: data))
    assert sorted(contents) == [b"face", b"phones", b"sound"]
    there, names = lay_task(shipment, contents, tmp_path / "lasting", tmp_path / "passing")
    for field in ("audio", "alignment", "character_file"):
        old, new = Path(getattr(mine, field)), Path(getattr(there.job, field))
        assert new != old and new.name == old.name and new.read_bytes() == old.read_bytes()
        assert names[str(new)] == str(old)
    assert (tmp_path / "lasting") in Path(there.job.character_file).parents
    assert (tmp_path / "passing") in Path(there.job.audio).parents
    assert Path(there.video).name == "c.mp4" and names[there.video] == task.video
    same = {name: getattr(mine, name) for name in shipped.PATHS}
    assert msgspec.structs.replace(there.job, **same) == mine


def test_a_video_that_is_its_own_sound_goes_once(home, tmp_path):
    (home / "c.mp4").write_bytes(b"film")
    film = str(home / "c.mp4")
    shipment, contents = sent(Task(job(home, audio=film, video=film), ""), Store(lambda d: d))
    assert sorted(contents) == [b"face", b"film"]
    there, _ = lay_task(shipment, contents, tmp_path / "lasting", tmp_path / "passing")
    assert there.job.audio == there.job.video and Path(there.job.video).read_bytes() == b"film"


def test_equal_names_do_not_meet(home, tmp_path):
    other = home / "other"
    other.mkdir()
    (other / "c.wav").write_bytes(b"phones in a file of the sound's name")
    mine = job(home, alignment=str(other / "c.wav"))
    there, _ = lay_task(*sent(Task(mine, ""), Store(lambda d: d)), tmp_path / "l", tmp_path / "p")
    assert Path(there.job.audio).read_bytes() == b"sound"
    assert Path(there.job.alignment).read_bytes().startswith(b"phones")


def test_a_file_that_is_gone_is_told_as_at_home(home, tmp_path):
    (home / "c.wav").unlink()
    mine = job(home)
    shipment, contents = sent(Task(mine, ""), Store(lambda d: d))
    there, names = lay_task(shipment, contents, tmp_path / "lasting", tmp_path / "passing")
    assert there.job.audio != mine.audio and not Path(there.job.audio).exists()
    said = at_home(ClipResult("c", "s", failed=f"{there.job.audio} is not a file"), names)
    assert said.failed == f"{mine.audio} is not a file"


def test_each_file_is_put_once_and_the_longest_unused_go(home, monkeypatch):
    puts = []
    store = Store(lambda data: puts.append(data) or data)
    paths = [str(home / name) for name in ("c.wav", "c.json", "mira.avatar")]
    store.packed(paths)
    store.packed(paths)
    assert puts == [b"sound", b"phones", b"face"]
    monkeypatch.setattr(shipped, "KEPT_BYTES", 12)
    store.packed(paths[:1])  # 15 bytes are held: the one not used since goes
    store.packed([paths[2]])
    assert len(puts) == 3
    parcels, contents = store.packed([paths[1]])
    assert len(puts) == 4 and contents == [b"phones"]
    assert parcels[0].sha256 == hashlib.sha256(b"phones").hexdigest()


def test_tools_lie_where_the_ruler_looks_for_them(home, tmp_path):
    for name in (DETECTOR, MESH):
        (home / name).write_bytes(name.encode())
    (home / "syncnet_v2.model").write_bytes(b"weights")
    tools = Tools("/cache", str(home), str(home / "syncnet_v2.model"), ("/checkpoints",))
    told, contents = shipped.pack_tools(tools, Store(lambda d: d))
    kit = msgspec.json.decode(told, type=Kit)
    there = lay_tools(kit, contents, tmp_path / "there", tmp_path / "cache")
    assert there.cache == str(tmp_path / "cache") and there.checkpoints == ()
    assert Path(there.syncnet).read_bytes() == b"weights"
    for name in (DETECTOR, MESH):
        assert (Path(there.models) / name).read_bytes() == name.encode()


@needs_models
def test_a_node_scores_as_this_machine_does(tmp_path, talking, monkeypatch):
    """The whole way without a cluster: packed, laid, done, and the results compared."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "node"))
    film, sound = write_video(tmp_path / "film.mp4", talking), tmp_path / "hum.wav"
    write_wav(sound, np.sin(np.arange(48_000 * 2) / 30))
    base = job(tmp_path, character_file=str(MIRA), audio=str(film), no_phones="none")
    jobs = [
        msgspec.structs.replace(base, clip="film", video=str(film)),
        msgspec.structs.replace(base, clip="gone", audio=str(tmp_path / "gone.wav")),
        msgspec.structs.replace(base, clip="hum", audio=str(sound)),
    ]
    worker, store, tools = NodeWorker(), Store(lambda d: d), Tools(str(tmp_path / "cache"))
    told, contents = shipped.pack_tools(tools, store)
    worker.hello(told, *contents)
    bench = start_bench(tools)
    for mine in jobs:
        task = Task(mine, str(tmp_path / "here" / f"{mine.clip}.mp4"))
        told, contents = shipped.pack_task(task, store)
        answer, video = worker.do(told, *contents)
        there, here = msgspec.json.decode(answer, type=ClipResult), do_task(task, bench)
        assert msgspec.structs.replace(there, timings_ms={}) == replace_timings(here)
        made = Path(task.video)
        assert (video is not None) == made.is_file() == (mine.clip == "hum")
        assert video is None or video == made.read_bytes()
    assert str(tmp_path / "gone.wav") in do_task(Task(jobs[1], ""), bench).failed
    (own,) = (tmp_path / "node" / "avatar-studio" / "cluster").iterdir()
    assert {p.name for p in own.iterdir()} == {"models", "lasting"}, "passing files are removed"
    worker.leave()
    assert not own.exists()


def replace_timings(result: ClipResult) -> ClipResult:
    return msgspec.structs.replace(result, timings_ms={})


def test_only_folders_of_dead_processes_of_this_machine_are_swept(tmp_path):
    import os
    import platform

    here = platform.node()
    names = [f"{here}-999999999", f"{here}-{os.getpid()}", "another-host-999999999", "notes"]
    for name in names:
        (tmp_path / name).mkdir()
    sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names[1:])


def test_default_models_are_sent(tmp_path):
    if not (default_folder() / MESH).is_file():
        pytest.skip("run python packaging/face_model.py")
    _, contents = shipped.pack_tools(Tools(""), Store(len))
    assert len(contents) == 2 and min(contents) > 100_000
