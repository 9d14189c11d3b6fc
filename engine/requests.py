"""What each control request does: one function a message, returning its reply or None (later).

Knows nothing of sockets or encodings; acts on the `Server` it is given.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

from engine import worker_messages as wm
from engine.clients import Client, negotiate
from engine.errors import EngineError
from engine.live_session import LiveSession
from engine.model_factory import check_model
from engine.models import MODELS
from engine.protocol import messages as pm

if TYPE_CHECKING:
    from engine.server import Server

FEATURES = [
    "frames_bgra",
    "audio_fill",
    "interrupt_at_sample",
    "inspect_picture",
    "doctor",
    "models",
]
LONGEST_BENCH_S = 300.0
SESSIONS = 8  # open at once; each is a process of its own


def engine_version() -> str:
    try:
        return metadata.version("avatar-studio")
    except metadata.PackageNotFoundError:
        return "0+source"


def hello(server: Server, client: Client, request: int, body: pm.Hello) -> Any:
    major, minor = negotiate(body, server.token)
    client.greet()
    return pm.Welcome(
        major=major, minor=minor, engine_version=engine_version(),
        features=[f for f in FEATURES if not body.features or f in body.features],
        models=[name for name in dict.fromkeys([server.config.model, *MODELS]) if name],
        audio=server.lanes.endpoints["audio"],
        frames=server.lanes.endpoints["frames"], telemetry=server.lanes.endpoints["telemetry"],
        monotonic_ns=time.monotonic_ns(), pid=os.getpid(),
    )  # fmt: skip


def open_session(server: Server, client: Client, request: int, body: pm.OpenSession) -> Any:
    installed = any(path.exists() for path in server.config.checkpoints)
    if not server.config.model_module and not installed:
        check_model(body.model)  # else only the worker knows the models
    if len(server.sessions) >= SESSIONS:
        raise EngineError(
            "bad_input", f"{SESSIONS} sessions are open, the limit", "close one of them"
        )
    number = secrets.randbelow(2**31 - 1) + 1  # not to be guessed by who may only send audio
    live = LiveSession(number, body, server.spare.take(body.model), server.outlet)
    server.sessions[number] = live
    server.owners[number] = (client.identity, request)
    # The answer is sent when the worker has said how large a chunk of this model is.


def load_character(server: Server, client: Client, request: int, body: pm.LoadCharacter) -> Any:
    live = _owned(server, client, body.session)
    if live.session is None:
        raise EngineError("not_ready", "the session is still being opened", "wait for its answer")
    if not body.picture:
        raise EngineError("bad_picture", "the picture is empty (0 bytes)", "send a picture file")
    live.load(server.new_job(client, request, live), body)


def inspect_picture(server: Server, client: Client, request: int, body: pm.InspectPicture) -> Any:
    server.spare.run(wm.InspectJob(server.new_job(client, request, None), body.picture))


def doctor(server: Server, client: Client, request: int, body: pm.Doctor) -> Any:
    server.spare.run(wm.DoctorJob(server.new_job(client, request, None)))


def list_models(server: Server, client: Client, request: int, body: pm.ListModels) -> Any:
    server.spare.run(wm.ListModelsJob(server.new_job(client, request, None)))


def load_model(server: Server, client: Client, request: int, body: pm.LoadModel) -> Any:
    server.spare.run(wm.LoadModelJob(server.new_job(client, request, None), body.model))


def unload_model(server: Server, client: Client, request: int, body: pm.UnloadModel) -> Any:
    if server.spare.holds == body.model:
        server.spare.unload()
        return pm.Done()
    if any(live.model == body.model for live in server.sessions.values()):
        raise EngineError(
            "bad_input", f"model {body.model!r} is in use", "close its session to free its memory"
        )
    raise EngineError("bad_input", f"model {body.model!r} is not loaded", "there is nothing to do")


def bench_model(server: Server, client: Client, request: int, body: pm.BenchModel) -> Any:
    if not 1 <= body.seconds <= LONGEST_BENCH_S:
        raise EngineError(
            "bad_input", f"{body.seconds:g} s is no length of a measurement",
            f"use 1 to {LONGEST_BENCH_S:g}",
        )  # fmt: skip
    job = server.new_job(client, request, None)
    server.spare.run(wm.BenchModelJob(job, body.model, body.seconds))


def set_settings(server: Server, client: Client, request: int, body: pm.SetSettings) -> Any:
    _owned(server, client, body.session).set_settings(body.settings)
    return pm.Done()


def start(server: Server, client: Client, request: int, body: pm.Start) -> Any:
    live, session = _opened(server, client, body.session)
    done = session.start(time.monotonic(), body.at_sample)
    live.drop_under_way(reset=True)
    return done


def interrupt(server: Server, client: Client, request: int, body: pm.Interrupt) -> Any:
    live, session = _opened(server, client, body.session)
    done = session.interrupt(time.monotonic(), body.at_sample)
    live.drop_under_way(reset=False)
    return done


def stop(server: Server, client: Client, request: int, body: pm.Stop) -> Any:
    live, session = _opened(server, client, body.session)
    done = session.stop(time.monotonic())
    live.drop_under_way(reset=False)
    return done


def close_session(server: Server, client: Client, request: int, body: pm.CloseSession) -> Any:
    _owned(server, client, body.session)
    server.close_session(body.session)
    return pm.Done()


def cancel(server: Server, client: Client, request: int, body: pm.Cancel) -> Any:
    server.cancel_job(client.identity, body.request)
    return pm.Done()


def ping(server: Server, client: Client, request: int, body: pm.Ping) -> Any:
    return pm.Done()


ACTIONS: dict[type, Callable[[Any, Client, int, Any], Any]] = {
    pm.Hello: hello,
    pm.InspectPicture: inspect_picture,
    pm.OpenSession: open_session,
    pm.LoadCharacter: load_character,
    pm.SetSettings: set_settings,
    pm.Start: start,
    pm.Interrupt: interrupt,
    pm.Stop: stop,
    pm.CloseSession: close_session,
    pm.Cancel: cancel,
    pm.Ping: ping,
    pm.Doctor: doctor,
    pm.ListModels: list_models,
    pm.LoadModel: load_model,
    pm.UnloadModel: unload_model,
    pm.BenchModel: bench_model,
}


def act(server: Server, client: Client, envelope: pm.RequestEnvelope) -> Any:
    """The reply body, or None when it comes later. Raises EngineError."""
    if not client.greeted and not isinstance(envelope.body, pm.Hello):
        raise EngineError(
            "not_ready", "the first request has to be hello", "reconnect, then say hello"
        )
    return ACTIONS[type(envelope.body)](server, client, envelope.id, envelope.body)


def _owned(server: Server, client: Client, number: int) -> LiveSession:
    live = server.sessions.get(number)
    if live is None or server.owners[number][0] != client.identity:
        raise EngineError("bad_input", f"no session {number} of yours is open", "open one")
    return live


def _opened(server: Server, client: Client, number: int) -> tuple[LiveSession, Any]:
    live = _owned(server, client, number)
    if live.session is None:
        raise EngineError("not_ready", "the session is still being opened", "wait for its answer")
    return live, live.session
