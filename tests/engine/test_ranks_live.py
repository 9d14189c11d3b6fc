"""A session on several ranks (gloo, `tiny`): it speaks, and any rank that is killed brings down all
of them, is named, and comes back with the others.
"""

from __future__ import annotations

import signal
import time

import psutil
import pytest

from engine.protocol import messages as pm
from tests.engine.test_recovery import Speaker
from tests.engine.wire_client import ROOT, EngineUnderTest, WireClient, states

PICTURE = ROOT / "tests" / "portrait_render" / "golden_mira.png"


def ranks_of(engine):
    """(worker, [ranks in their order]) of the one session."""
    for worker in psutil.Process(engine.process.pid).children():
        ranks = [p for p in worker.children() if "engine.rank_body" in p.cmdline()]
        if ranks:
            return worker, ranks
    return None, []


def patient(client, body, timeout_s=120.0, others=()):
    """The answer to a slow request, by a studio that pings meanwhile, as `others` do."""
    request, deadline = client.send(body), time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        for one in (client, *others):
            one.send(pm.Ping())
        while client.control.poll(500):
            envelope = pm.decode_reply(client.control.recv())
            if envelope.id == request:
                return envelope.body
    raise AssertionError(f"no answer to {body} in {timeout_s} s")


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    process = EngineUnderTest(tmp_path_factory.mktemp("r"), "--model", "tiny", "--gpus", "2+1")
    yield process
    below = psutil.Process(process.process.pid).children(recursive=True)
    assert process.close() == 0
    assert not [p for p in below if p.is_running()]  # also no zombie


@pytest.fixture(scope="module")
def session(engine):
    client = WireClient(engine.ready)
    opened = patient(client, pm.OpenSession(model="tiny", options={"synthetic": 1.0}))
    assert isinstance(opened, pm.SessionOpened), opened
    assert opened.synthetic and opened.frames_per_chunk == 4
    picture = PICTURE.read_bytes()
    loaded = patient(
        client,
        pm.LoadCharacter(session=opened.session, spec=pm.CharacterSpec(), picture=picture),
    )
    assert isinstance(loaded, pm.CharacterLoaded), loaded
    started = client.ask(pm.Start(session=opened.session))
    speaker = Speaker(client, opened.session, started)
    yield client, speaker
    client.close()


def collect(client, speaker, until, timeout_s=120.0):
    def check(frames, telemetry):
        speaker.keep_up()
        return until(frames, telemetry)

    return client.collect(check, timeout_s)


def timings(telemetry):
    return [m for m in telemetry if isinstance(m, pm.ChunkTimings)]


def test_every_rank_tells_its_time(session):
    client, speaker = session
    frames = collect(client, speaker, lambda f, t: len(timings(t)) >= 4)
    assert all(f.synthetic for f, _ in frames)
    last = timings(client.telemetry_seen)[-1]
    assert [(r.rank, r.stage, r.device) for r in last.ranks] == [
        (0, "denoise", "cpu"), (1, "denoise", "cpu"), (2, "decode", "cpu"),
    ]  # fmt: skip
    assert all(r.ms > 0 for r in last.ranks)
    assert all(0 < r.comm_ms < r.ms for r in last.ranks[:2])
    assert set(last.stage_ms) == {"audio", "encode", "denoise", "decode"}
    told = states(client.telemetry_seen)[-1].ranks
    assert told == "2 denoise ranks + 1 decode rank, which share the CPU"


def test_interruption_reaches_every_rank_at_the_same_chunk(session):
    client, speaker = session
    before = len(timings(client.telemetry_seen))
    collect(client, speaker, lambda f, t: len(timings(t)) > before)
    done = client.ask(pm.Interrupt(session=speaker.session))
    speaker.epoch, speaker.next = done.epoch, done.first_sample
    speaker.first, speaker.begun = done.first_sample, time.monotonic()
    frames = collect(client, speaker, lambda f, t: any(x.epoch == done.epoch for x, _ in f))
    first_new = next(i for i, (f, _) in enumerate(frames) if f.epoch == done.epoch)
    assert frames[first_new][0].pts == done.first_sample
    assert all(f.epoch == done.epoch for f, _ in frames[first_new:])


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1, 2, "stopped"])
def test_a_lost_rank_takes_all_down_and_all_come_back(engine, session, victim):
    client, speaker = session
    seen = len(client.telemetry_seen)
    worker, ranks = ranks_of(engine)
    everybody = [worker, *ranks]
    one = everybody[1 if victim == "stopped" else victim]
    restarts = states(client.telemetry_seen)[-1].counters.worker_restarts
    begun = time.monotonic()
    one.send_signal(signal.SIGSTOP if victim == "stopped" else signal.SIGKILL)

    def down(frames, telemetry):
        return any(s.code == "worker_died" for s in states(telemetry[seen:]))

    collect(client, speaker, down)
    limit = 3.0 if victim != "stopped" else 4.0  # silence of 2.5 s comes before
    assert time.monotonic() - begun < limit + 2.0  # of a shared machine
    report = [m.text for m in client.telemetry_seen[seen:] if isinstance(m, pm.LogLine)]
    names = {0: "the worker was killed by SIGKILL", 1: "denoise rank 1 (cpu) was killed by SIGKILL",
             2: "decode rank 2 (cpu) was killed by SIGKILL",
             "stopped": "denoise rank 1 (cpu) no heartbeat"}  # fmt: skip
    assert any(names[victim] in line for line in report), "\n".join(report)
    assert psutil.wait_procs(everybody, timeout=5)[1] == []

    def back(frames, telemetry):
        return len([s for s in timings(telemetry[seen:]) if s.chunk_index >= 0]) > 2

    collect(client, speaker, back)
    assert states(client.telemetry_seen)[-1].counters.worker_restarts >= restarts + 1
    worker, ranks = ranks_of(engine)
    assert len(ranks) == 2 and not set(ranks) & set(everybody)
