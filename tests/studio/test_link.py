"""The link against a fake engine that speaks the real protocol over real sockets."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engine.errors import EngineError
from engine.protocol import MAJOR, MINOR, messages
from engine.protocol.audio_block import AudioBlock
from studio.lanes import reachable
from studio.link import EngineLink
from studio.requests import Requests
from tests.studio.fake_engine import FakeEngine


class Frames:
    def __init__(self):
        self.got = []

    def arrived(self, picture, now_ns):
        self.got.append(picture)

    def tick(self, now_ns):
        return 3600.0


class Ears:
    """What the link's signals said."""

    def __init__(self, link):
        self.connected, self.lost, self.refused, self.telemetry = [], [], [], []
        for name in ("connected", "lost", "refused", "telemetry"):
            getattr(link, name).connect(getattr(self, name).append)


@pytest.fixture
def engine():
    engine = FakeEngine()
    yield engine
    engine.close()


@pytest.fixture
def frames():
    return Frames()


@pytest.fixture
def link(qtbot, frames):
    link = EngineLink(frames)
    link.ears = Ears(link)
    yield link
    link.close()


def opened(qtbot, link, engine):
    link.open(engine.endpoints["control"])
    qtbot.waitUntil(lambda: len(link.ears.connected) == 1, timeout=5000)


def test_hello_request_frames_blocks_and_telemetry(qtbot, link, engine, frames):
    opened(qtbot, link, engine)
    assert link.ears.connected[0].engine_version == "fake"
    replies = []
    link.request(messages.Ping(), replies.append)
    qtbot.waitUntil(lambda: replies == [messages.Done()], timeout=3000)
    link.follow_session(7)
    link.send_block(AudioBlock(7, 1, 0, 5, np.ones(960, np.float32)))

    def frames_arrive():
        engine.publish(7, len(frames.got))
        engine.publish(8, 99)
        return len(frames.got) > 5

    qtbot.waitUntil(frames_arrive, timeout=5000)
    assert {f.session for f in frames.got} == {7}, "another session's frames are filtered out"
    assert (frames.got[3].pixels == frames.got[3].frame_index % 256).all()
    qtbot.waitUntil(lambda: len(engine.blocks) == 1, timeout=3000)
    assert engine.blocks[0].capture_time_ns == 5
    line = messages.LogLine(level="info", source="x", text="y")

    def told():
        engine.tell(line)
        return line in link.ears.telemetry

    qtbot.waitUntil(told, timeout=3000)


def test_a_refusal_of_a_request_is_an_engine_error(qtbot, link, engine):
    opened(qtbot, link, engine)
    failure = messages.Failure(code="no_face", message="no face", hint="use another")
    engine.answers[messages.InspectPicture] = lambda body: failure
    errors = []
    link.request(messages.InspectPicture(picture=b"x"), None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1, timeout=3000)
    assert (errors[0].code, str(errors[0])) == ("no_face", "no face: use another")


def test_a_lost_answer_is_asked_for_again_under_the_same_id(qtbot, link, engine):
    opened(qtbot, link, engine)
    seen = []
    engine.answers[messages.Start] = lambda body: (
        seen.append(body) or (messages.Done(epoch=3) if len(seen) == 3 else None)
    )
    replies = []
    number = link.request(messages.Start(session=1), replies.append, None, deadline_s=0.1)
    qtbot.waitUntil(lambda: replies == [messages.Done(epoch=3)], timeout=3000)
    assert [r.id for r in engine.requests if r.id == number] == [number] * 3


def test_silence_fails_a_request_after_three_tries(qtbot, link, engine):
    opened(qtbot, link, engine)
    engine.answers[messages.Start] = lambda body: None
    errors = []
    link.request(messages.Start(session=1), None, errors.append, deadline_s=0.05)
    qtbot.waitUntil(lambda: len(errors) == 1, timeout=3000)
    assert errors[0].code == "timeout" and "Start" in str(errors[0])


def test_an_address_that_cannot_be_one_is_refused_in_one_line(qtbot, link):
    link.open("ipc://" + "x" * 300)
    qtbot.waitUntil(lambda: len(link.ears.refused) == 1, timeout=3000)
    said = str(link.ears.refused[0])
    assert "no address" in said and "tcp://host:port" in said and "ZMQ" not in said


def test_another_major_version_is_refused_naming_both(qtbot, link):
    engine = FakeEngine(major=9)
    link.open(engine.endpoints["control"])
    qtbot.waitUntil(lambda: len(link.ears.refused) == 1, timeout=3000)
    assert link.ears.refused[0].code == "protocol_version"
    said = str(link.ears.refused[0])
    assert "9.0" in said and f"{MAJOR}.{MINOR}" in said
    assert link.ears.connected == []
    engine.close()


def test_a_silent_engine_is_lost_within_four_seconds_and_found_again(qtbot, link, engine):
    opened(qtbot, link, engine)
    engine.mute = True
    errors = []
    link.request(messages.Ping(), None, errors.append, deadline_s=10)
    begun = time.monotonic()
    qtbot.waitUntil(lambda: len(link.ears.lost) == 1, timeout=6000)
    assert 2.5 < time.monotonic() - begun < 4.5
    assert errors[0].code == "not_ready"
    engine.mute = False
    qtbot.waitUntil(lambda: len(link.ears.connected) == 2, timeout=6000)


def test_a_new_engine_at_the_same_address_is_greeted_again(qtbot, link):
    engine = FakeEngine()
    endpoint = engine.endpoints["control"]
    opened(qtbot, link, engine)
    engine.close()
    another = FakeEngine(endpoint)
    greeted = []

    def only_after_hello(body):
        if not greeted:
            return messages.Failure(code="not_ready", message="say hello")
        return messages.Done()

    another.answers[messages.Ping] = only_after_hello
    another.answers[messages.Hello] = lambda body: greeted.append(body) or another.usual(body)
    qtbot.waitUntil(lambda: len(link.ears.connected) == 2, timeout=8000)
    another.close()


def test_requests_without_an_engine_fail_at_once(qtbot, link):
    errors = []
    link.request(messages.Ping(), None, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1, timeout=1000)
    assert errors[0].code == "not_ready"


def test_malformed_messages_are_counted_and_change_nothing(qtbot, link, engine, frames):
    opened(qtbot, link, engine)
    link.follow_session(7)

    def malformed():
        engine.outbox.append(("telemetry", b"\xff\xff"))
        engine.outbox.append(("frames", b"AVFR\x07\x00\x00\x00short"))
        counts = link.counts()
        return counts["message_malformed"] > 2 and counts["frame_malformed"] > 2

    qtbot.waitUntil(malformed, timeout=5000)
    replies = []
    link.request(messages.Ping(), replies.append)
    qtbot.waitUntil(lambda: len(replies) == 1, timeout=3000)


def test_a_blocked_gui_costs_a_bounded_inbox(qtbot, link, engine):
    opened(qtbot, link, engine)
    line = messages.LogLine(level="info", source="x", text="y" * 100)
    for _ in range(5_000):
        link._post(_event(line))
    assert len(link._news) == 1_000
    qtbot.waitUntil(lambda: len(link.ears.telemetry) >= 1_000, timeout=3000)


def _event(line):
    from studio.wire_loop import LinkEvent

    return LinkEvent("telemetry", 0, line)


def test_opening_and_closing_leaves_nothing(qtbot, engine):
    for _ in range(20):
        link = EngineLink(Frames())
        link.open(engine.endpoints["control"])
        link.close()
        link.close()


def test_request_table():
    table = Requests()
    table.add(1, messages.Ping(), 1.0, now=0.0)
    assert table.due(0.9) == ([], [])
    assert len(table.due(1.0)[0]) == 1
    table.progressed(1, now=1.9)
    assert table.due(2.5) == ([], [])
    assert len(table.due(3.0)[0]) == 1
    again, failed = table.due(4.0)
    assert again == [] and failed[0][0] == 1 and failed[0][1].code == "timeout"
    assert not table.answered(1)
    table.add(2, messages.Ping(), 1.0, now=0.0)
    assert table.answered(2) and not table.answered(2)
    table.add(3, messages.Ping(), 1.0, now=0.0)
    assert table.abandon(EngineError("timeout", "gone"))[0][0] == 3 and len(table) == 0


@pytest.mark.parametrize(
    ("lane", "control", "expected"),
    [
        ("tcp://0.0.0.0:5", "tcp://gpu:1", "tcp://gpu:5"),
        ("tcp://*:5", "tcp://gpu:1", "tcp://gpu:5"),
        ("tcp://10.0.0.3:5", "tcp://gpu:1", "tcp://10.0.0.3:5"),
        ("ipc:///run/x/frames", "ipc:///run/x/control", "ipc:///run/x/frames"),
    ],
)
def test_reachable(lane, control, expected):
    assert reachable(lane, control) == expected
