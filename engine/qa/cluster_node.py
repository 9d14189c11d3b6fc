"""One core of a cluster's node: says which program it is, then does shipped jobs one by one.

Lives in a process of its own on the node. All that it is told and answers is bytes. Files lie in
the node's own cache folder as long as they are needed. Knows nothing of Ray.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.errors import EngineError

if TYPE_CHECKING:  # numpy is imported after the thread variables are set
    from engine.qa.do_job import Bench
    from engine.qa.workers import Tools


class NodeWorker:
    """`hello` first, then `do` any number of times, `leave` at the end."""

    def __init__(self) -> None:
        self._folder = Path()
        self._tools: Tools | None = None
        self._bench: Bench | None = None

    def hello(self, told: bytes, *contents: bytes) -> bytes:
        """A Kit and its contents -> this program's Identity. Raises RuntimeError, OSError."""
        from engine.qa.workers import one_core

        one_core()
        from engine.qa.same_code import identity
        from engine.qa.shipped import Kit, lay_tools

        # The top of a process of its own: here the environment may be read.
        home = os.environ.get("XDG_CACHE_HOME")
        cache = (Path(home) if home else Path.home() / ".cache") / "avatar-studio"
        self._folder = cache / "cluster" / f"{platform.node()}-{os.getpid()}"
        sweep(self._folder.parent)
        self._tools = lay_tools(msgspec.json.decode(told, type=Kit), contents, self._folder, cache)
        more = ("torch",) if self._tools.syncnet else ()
        with plain_errors():
            return msgspec.json.encode(identity(Path(self._tools.models), more))

    def do(self, told: bytes, *contents: bytes) -> tuple[bytes, bytes | None]:
        """A Shipment and its contents -> the ClipResult, and the video that is to be kept.

        A bad clip is a failed result. Raises RuntimeError, OSError where this machine is not fit.
        """
        from engine.qa.shipped import Shipment, at_home, lay_task
        from engine.qa.workers import do_task, start_bench

        assert self._tools is not None, "hello comes first"
        if self._bench is None:
            with plain_errors():
                self._bench = start_bench(self._tools)
        shipment = msgspec.json.decode(told, type=Shipment)
        with tempfile.TemporaryDirectory(dir=self._folder) as passing:
            task, home = lay_task(shipment, contents, self._folder / "lasting", Path(passing))
            result = at_home(do_task(task, self._bench), home)
            ours = Path(task.video)
            kept = task.job.keep_video and not task.job.video and ours.is_file()
            return msgspec.json.encode(result), ours.read_bytes() if kept else None

    def leave(self) -> None:
        """Removes its files."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def plain_errors() -> Generator[None, None, None]:
    """Our own errors as one that any program can read, whatever is installed there."""
    try:
        yield
    except EngineError as error:
        raise RuntimeError(str(error)) from None


def sweep(folder: Path) -> None:
    """Removes what killed workers of this machine have left: folders named by processes gone.

    Nodes may share their home, so another machine's folders are its own.
    """
    import psutil

    if folder.is_dir():
        for left in folder.iterdir():
            machine, _, number = left.name.rpartition("-")
            if machine == platform.node() and not psutil.pid_exists(int(number)):
                shutil.rmtree(left, ignore_errors=True)
