"""The only door to Ray: a connection, its nodes, bytes put for them, workers on their cores.

Ray itself serialises with cloudpickle inside a cluster: whoever is in it may run code on all of it,
so name only one that you trust. What we hand it are bytes. Where a cluster's head dies, Ray ends
this process after 60 s with a line of its own. Knows nothing of jobs.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from engine.errors import EngineError, first_line
from engine.qa.cluster_node import NodeWorker
from engine.qa.ray_knock import QUIET

REMEDY = "pip install 'avatar-studio[cluster]'"
ADDRESS = re.compile(r"auto|(?P<host>[A-Za-z0-9._-]+):(?P<port>\d{1,5})")
ANSWER_S = 15.0  # ray.init itself would try for some minutes
TCP_S = 5.0
JOIN = "this machine must be a node of it: ray start --address=HOST:PORT"
GO_ON = "the same command goes on with what is missing"


class LostError(Exception):
    """A worker that gives no answer any more, and why: one line."""


class Node:
    """A machine of the cluster and its cores; `losses` counts workers lost there in a row."""

    def __init__(self, id: str, name: str, cores: int) -> None:
        self.id, self.name, self.cores = id, name, cores
        self.losses = 0
        self.known = False  # a worker of it has shown the same program
        self.refused = ""


class RayDoor:
    """`answer` raises LostError for a worker that is gone; every method EngineError where the
    cluster itself is."""

    def __init__(self, ray: Any, address: str) -> None:
        self._ray, self.address = ray, address
        self._worker = ray.remote(NodeWorker)
        self._nodes: dict[str, Node] = {}

    def nodes(self) -> list[Node]:
        """Those alive that have cores; the same object for the same node."""
        for row in self._asked(self._ray.nodes):
            known = self._nodes.pop(row["NodeID"], None)
            cores = int(row["Resources"].get("CPU", 0))
            if row["Alive"] and cores:
                node = known or Node(row["NodeID"], row["NodeManagerAddress"], cores)
                self._nodes[node.id] = node
        return list(self._nodes.values())

    def put(self, data: bytes) -> Any:
        return self._asked(self._ray.put, data)

    def start(self, node: Node) -> Any:
        """A worker on one core of that node: at once, or when the core is free."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node.id, soft=False)
        return self._asked(
            self._worker.options(num_cpus=1, max_restarts=0, scheduling_strategy=there).remote
        )

    def call(self, worker: Any, method: str, *arguments: Any) -> Any:
        """What `wait` and `answer` take. Of what was `put` a node fetches each piece once."""
        return getattr(worker, method).remote(*arguments)

    def wait(self, calls: Sequence[Any], timeout_s: float) -> list[Any]:
        """Those that have an answer; waits for the first."""
        if not calls:
            time.sleep(timeout_s)
            return []
        done, _ = self._asked(self._ray.wait, list(calls), timeout=timeout_s)
        return done

    def answer(self, call: Any) -> Any:
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:  # raised over there, as its own type
            raise LostError(first_line(error.cause or error)) from error
        except self._ray.exceptions.RayError as error:
            raise LostError(_said(error)) from error

    def kill(self, worker: Any) -> None:
        self._asked(self._ray.kill, worker)

    def close(self) -> None:
        self._ray.shutdown()

    def _asked(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
            problem = f"the cluster at {self.address} does not work ({first_line(error)})"
            raise EngineError("worker_died", problem, GO_ON) from error


def connect(address: str) -> RayDoor:
    """Raises EngineError: "bad_config" without Ray, "bad_input" for an address that is none,
    "timeout" for one that does not answer within ANSWER_S."""
    found = ADDRESS.fullmatch(address)
    if not found or int(found["port"] or 1) > 65_535:
        raise EngineError("bad_input", f"{address!r} is no address of a cluster", "use HOST:PORT")
    if not installed():
        raise EngineError("bad_config", "--ray needs Ray, which is not installed", REMEDY)
    os.environ.update(QUIET)  # read by Ray when it is imported
    _knock(address, found["host"], found["port"])
    import ray
    import ray.exceptions  # of the module that RayDoor is given

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _unanswered(address, first_line(error)) from error
    return RayDoor(ray, address)


def installed() -> bool:
    return importlib.util.find_spec("ray") is not None


def _knock(address: str, host: str | None, port: str | None) -> None:
    """A child tries first: Ray's own attempts go on for minutes and cannot be interrupted."""
    if host and port:
        try:
            socket.create_connection((host, int(port)), TCP_S).close()
        except OSError as error:
            raise _unanswered(address, error.strerror or first_line(error)) from error
    command = [sys.executable, "-m", "engine.qa.ray_knock", address]
    try:
        done = subprocess.run(
            command, timeout=ANSWER_S, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise _unanswered(address, f"nothing in {ANSWER_S:g} s") from error
    if done.returncode:
        said = done.stdout.strip() or f"its client ended with status {done.returncode}"
        raise _unanswered(address, said)


def _unanswered(address: str, why: str) -> EngineError:
    return EngineError("timeout", f"no Ray cluster answers at {address} ({why})", JOIN)


def _said(error: BaseException) -> str:
    """Ray's reasons have many lines: the one that tells why."""
    if "Unavailable" in type(error).__name__:
        return "the connection to it broke"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("its node has died" in line for line in lines):
        return "the node is gone"
    told = [line for line in lines if "Error" in line or "died because" in line]
    return (told or lines or [type(error).__name__])[-1][:200]
