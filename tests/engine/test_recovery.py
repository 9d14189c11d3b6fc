"""Workers that die, hang or fail while somebody speaks; studios that vanish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil

from engine.protocol import messages as pm
from tests.engine.wire_client import ROOT, EngineUnderTest, WireClient, states

LEVEL = np.resize(np.array([0.5, -0.5], np.float32), 960)


class Speaker:
    """A microphone that never stops, paced by the wall clock inside `collect`."""

    def __init__(self, client, session, started):
        self.client, self.session, self.epoch = client, session, started.epoch
        self.next, self.begun = started.first_sample, time.monotonic()
        self.first = started.first_sample

    def keep_up(self):
        due = self.first + int((time.monotonic() - self.begun) * 48_000)
        while self.next < due:
            self.client.speak(self.session, self.epoch, self.next, LEVEL, live=True)
            self.next += 960


def workers(engine):
    children = psutil.Process(engine.process.pid).children()
    return [p for p in children if "engine.worker" in p.cmdline()]


def live(client, **options):
    opened = client.open(**options)
    started = client.ask(pm.Start(session=opened.session))
    return opened.session, Speaker(client, opened.session, started)


def collect(client, speaker, until):
    def check(frames, telemetry):
        speaker.keep_up()
        return until(frames, telemetry)

    return client.collect(check)


def test_kill_9_while_speaking(engine, client):
    session, speaker = live(client)
    collect(client, speaker, lambda f, t: len(f) >= 10)
    (worker,) = workers(engine)
    worker.send_signal(signal.SIGKILL)
    killed = len(client.telemetry_seen)
    frames = collect(client, speaker, lambda f, t: len([x for x in f if x[1] == 50]) > 30)
    told = states(client.telemetry_seen[killed:])
    down = next(s for s in told if s.code == "worker_died")
    assert down.state == "RUNNING" and "SIGKILL" in down.message
    assert told[-1].code == "" or states(client.telemetry_seen)[-1].counters.worker_restarts == 1
    indices = [f.frame_index for f, _ in frames]
    assert indices == sorted(set(indices))
    assert all(f.epoch == speaker.epoch for f, _ in frames)
    logs = [m for m in client.telemetry_seen if isinstance(m, pm.LogLine) and m.level == "error"]
    assert "SIGKILL" in logs[0].text
    client.ask(pm.CloseSession(session=session))


def test_a_stopped_worker_counts_as_hung(engine, client):
    session, speaker = live(client)
    collect(client, speaker, lambda f, t: len(f) >= 4)
    (worker,) = workers(engine)
    begun = time.monotonic()
    worker.send_signal(signal.SIGSTOP)
    collect(client, speaker, lambda f, t: any(s.code == "worker_died" for s in states(t)))
    noticed = next(s for s in states(client.telemetry_seen) if s.code == "worker_died")
    assert "no heartbeat" in noticed.message
    assert time.monotonic() - begun < 10  # told within 3 s; a generous bound for a busy machine
    frames = collect(client, speaker, lambda f, t: len(f) >= 12)
    assert frames[-1][0].frame_index > 4
    client.ask(pm.CloseSession(session=session))


def test_a_model_that_always_fails_ends_as_failed_with_its_reason(client):
    session, speaker = live(client, fail_at=3)
    collect(client, speaker, lambda f, t: any(s.state == "FAILED" for s in states(t)))
    failed = next(s for s in states(client.telemetry_seen) if s.state == "FAILED")
    assert failed.code == "worker_died" and "the model's own fault" in failed.message
    assert failed.counters.worker_restarts == 5
    again = client.ask(pm.LoadCharacter(session=session, spec=pm.CharacterSpec(), picture=b"m"))
    assert isinstance(again, pm.Failure) and again.code == "worker_died"
    client.ask(pm.CloseSession(session=session))


def test_a_picture_that_kills_the_worker_is_refused_and_the_old_face_stays(client):
    opened = client.open()
    reply = client.ask(
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=b"crash")
    )
    assert isinstance(reply, pm.Failure) and reply.code == "worker_died"
    started = client.ask(pm.Start(session=opened.session))
    speaker = Speaker(client, opened.session, started)
    frames = collect(client, speaker, lambda f, t: len(f) > 5)
    assert frames[-1][0].pixels[1, 1, 0] == 40 + len("meter")
    client.ask(pm.CloseSession(session=opened.session))


def test_loading_can_be_cancelled_and_reports_progress(client):
    opened = client.open()
    request = client.send(
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=b"slow")
    )
    client.collect(lambda f, t: any(isinstance(m, pm.ProgressReport) for m in t))
    assert isinstance(client.ask(pm.Ping()), pm.Done)  # the engine answers meanwhile
    client.send(pm.Cancel(request=request))
    assert client.reply(request).code == "cancelled"
    refused = client.ask(
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=b"refuse")
    )
    assert refused.code == "no_face"
    client.ask(pm.CloseSession(session=opened.session))


def test_interrupt_while_speaking(client):
    session, speaker = live(client)
    collect(client, speaker, lambda f, t: len(f) >= 8)
    done = client.ask(pm.Interrupt(session=session))
    assert done.epoch == 2 and done.first_sample % 2000 == 0
    frames = client.collect(lambda f, t: len([x for x in f if x[0].epoch == 2]) > 12)
    new = [(f, level) for f, level in frames if f.epoch == 2]
    assert new[0][0].pts == done.first_sample
    assert all(f.idle and level == 0 for f, level in new)  # nobody speaks: at rest, at 24 fps
    assert not any(f.epoch == 1 for f, _ in frames[frames.index(new[0]) :])
    client.ask(pm.Stop(session=session))
    client.ask(pm.CloseSession(session=session))


def test_a_new_face_while_speaking(client):
    session, speaker = live(client)
    collect(client, speaker, lambda f, t: len(f) >= 8)
    client.ask(pm.LoadCharacter(session=session, spec=pm.CharacterSpec(), picture=b"other one"))
    frames = collect(client, speaker, lambda f, t: len(f) > 20 and f[-1][0].pixels[1, 1, 0] == 49)
    indices = [f.frame_index for f, _ in frames]
    client.ask(pm.Stop(session=session))
    client.collect(lambda f, t: states(t)[-1].state == "READY")
    dropped = states(client.telemetry_seen)[-1].counters.chunks_dropped  # on a busy machine
    missing = indices[-1] - indices[0] + 1 - len(indices)
    assert indices == sorted(set(indices)) and missing <= 2 * dropped
    client.ask(pm.CloseSession(session=session))


def test_a_studio_that_comes_back_under_its_name_keeps_its_session(engine):
    first = WireClient(engine.ready, name=b"studio-1")
    opened = first.open()
    started = first.ask(pm.Start(session=opened.session))
    first.close()
    again = WireClient(engine.ready, name=b"studio-1")  # its request ids begin at 1 again
    speaker = Speaker(again, opened.session, started)
    frames = collect(again, speaker, lambda f, t: any(level == 50 for _, level in f))
    assert frames[-1][0].epoch == started.epoch
    assert again.ask(pm.CloseSession(session=opened.session)) == pm.Done()
    again.close()


def test_sessions_of_a_vanished_studio_are_closed(tmp_path, monkeypatch):
    engine = EngineUnderTest(tmp_path)
    gone, watcher = WireClient(engine.ready), WireClient(engine.ready)
    gone.open()
    gone.close()

    def closed(frames, telemetry):
        watcher.send(pm.Ping())
        return any(s.state == "CANCELLED" for s in states(telemetry))

    watcher.collect(closed, timeout_s=20)
    watcher.close()
    assert engine.close() == 0
    assert not list(tmp_path.glob("avatar-*"))  # the runtime folder is gone


def test_the_engine_ends_with_its_parent(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    engine = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "engine",
            "serve",
            "--runtime-dir",
            str(tmp_path),
            "--parent-pid",
            str(parent.pid),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert engine.stdout.readline()
    children = psutil.Process(engine.pid).children()
    parent.kill()
    parent.wait()
    assert engine.wait(10) == 0
    engine.stdout.close()
    assert psutil.wait_procs(children, timeout=5)[1] == []


def test_kill_9_of_the_engine_leaves_no_worker(tmp_path):
    engine = EngineUnderTest(tmp_path)
    client = WireClient(engine.ready)
    client.open()
    children = psutil.Process(engine.process.pid).children()
    assert children
    os.kill(engine.process.pid, signal.SIGKILL)
    assert psutil.wait_procs(children, timeout=8)[1] == []
    engine.process.wait()
    engine.process.stdout.close()
    engine.log.close()
    client.close()
