"""Malformed messages on every lane of a real engine: nothing crashes, hangs or grows."""

from __future__ import annotations

import contextlib

import msgspec
import numpy as np
import psutil
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import worker_messages as wm
from engine.errors import EngineError
from engine.protocol import audio_block, frame
from engine.protocol import messages as pm
from tests.engine.test_protocol import ALL, example

VALID = [
    msgspec.msgpack.encode(pm.RequestEnvelope(i, example(k)))
    for i, k in enumerate(k for k in ALL if k in pm.Request.__args__)
]


def mangled(random, data):
    """A valid message with a few bytes changed, cut, doubled or inserted."""
    data = bytearray(data)
    for _ in range(int(random.integers(1, 6))):
        at = int(random.integers(0, len(data))) if data else 0
        match int(random.integers(0, 4)):
            case 0 if data:
                data[at] = int(random.integers(0, 256))
            case 1:
                del data[at : at + int(random.integers(1, 20))]
            case 2:
                data[at:at] = random.bytes(int(random.integers(1, 20)))
            case 3:
                data += data[:50]
    return bytes(data)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_decoders_raise_nothing_else(data):
    for decode in (
        pm.decode_request,
        pm.decode_reply,
        pm.decode_telemetry,
        audio_block.decode,
        frame.decode,
    ):
        try:
            decode(data)
        except EngineError as error:
            assert error.code == "bad_message"


def test_mangled_messages_decode_or_are_refused():
    random = np.random.default_rng(5)
    for _ in range(20_000):
        data = mangled(random, VALID[int(random.integers(len(VALID)))])
        try:
            pm.decode_request(data)
        except EngineError as error:
            assert error.code == "bad_message"


SLOW_REQUESTS = (b"open_session", b"doctor", b"inspect", b"load_", b"list_models", b"bench_model")


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x91" * 100_000,  # nested arrays
        b"\x82\xa2id\x01\xa4body" + b"\x81\xa4type" * 50_000,
        b"\xdf\xff\xff\xff\xff",  # a map of 4 billion entries
        b"\x82\xa2id\x01\xa4body\x82\xa4type\xafinspect_picture\xa7picture\xc6\xff\xff\xff\xff",
        b"",
    ],
)
def test_bombs_are_refused(bomb):
    with pytest.raises(EngineError):
        pm.decode_request(bomb)


def test_control_lane(engine, client):
    random = np.random.default_rng(1)
    process = psutil.Process(engine.process.pid)
    before = process.memory_info().rss
    stranger = client.context.socket(zmq.DEALER)
    stranger.setsockopt(zmq.LINGER, 0)
    stranger.connect(engine.ready["endpoints"]["control"])
    for i in range(4_000):
        source = stranger if i % 3 else client.control
        data = mangled(random, VALID[int(random.integers(len(VALID)))])
        # Nothing that a process is started for, or that is answered later, under a ping's id.
        if any(word in data for word in SLOW_REQUESTS):
            data = random.bytes(int(random.integers(0, 200)))
        source.send(data) if i % 17 else source.send_multipart([data, b"", data])
        if i % 200 == 0:
            assert isinstance(client.ask(pm.Ping()), pm.Done)
    stranger.close()
    assert isinstance(client.ask(pm.Ping()), pm.Done)
    assert process.memory_info().rss - before < 30e6


def test_audio_lane(engine, client):
    random = np.random.default_rng(2)
    process = psutil.Process(engine.process.pid)
    opened = client.open()
    started = client.ask(pm.Start(session=opened.session))
    good = audio_block.encode(
        audio_block.AudioBlock(opened.session, started.epoch, 0, 1, np.zeros(960, np.float32))
    )
    before = process.memory_info().rss
    for i in range(3_000):
        header = bytearray(good)
        if i % 2:  # valid but for wild numbers in the header
            header[16:24] = random.bytes(8)
            client.audio.send(bytes(header))
        else:
            client.audio.send(mangled(random, good))
        if i % 100 == 0:
            assert isinstance(client.ask(pm.Ping()), pm.Done)
    client.audio.send(np.full(1000, np.nan, np.float32).tobytes())
    assert isinstance(client.ask(pm.Ping()), pm.Done)
    assert process.memory_info().rss - before < 30e6
    done = client.ask(pm.Interrupt(session=opened.session))  # and it still speaks
    tone = np.resize(np.array([0.3, -0.3], np.float32), 9600)
    client.speak(opened.session, done.epoch, done.first_sample, tone)
    client.collect(lambda f, t: any(level == 30 for _, level in f))
    client.ask(pm.CloseSession(session=opened.session))


def test_oversized_messages_cost_only_their_sender(engine, client):
    attacker = client.context.socket(zmq.PUSH)
    attacker.setsockopt(zmq.LINGER, 0)
    attacker.connect(client.welcome.audio)
    for _ in range(20):
        with_room = attacker.poll(100, zmq.POLLOUT)
        if with_room:
            attacker.send(bytes(1_000_000))
    attacker.close()
    assert isinstance(client.ask(pm.Ping()), pm.Done)


def test_publishing_lanes_ignore_what_subscribers_send(engine, client):
    for endpoint in (client.welcome.frames, client.welcome.telemetry):
        rude = client.context.socket(zmq.XSUB)
        rude.setsockopt(zmq.LINGER, 0)
        rude.connect(endpoint)
        for i in range(200):
            rude.send(bytes([i % 3]) + bytes(50))
        rude.close()
    assert isinstance(client.ask(pm.Ping()), pm.Done)


def test_many_strangers_do_not_push_out_who_said_hello(engine, client):
    opened = client.open()
    for _ in range(60):
        stranger = client.context.socket(zmq.DEALER)
        stranger.setsockopt(zmq.LINGER, 0)
        stranger.connect(engine.ready["endpoints"]["control"])
        stranger.send(pm.encode(pm.RequestEnvelope(1, pm.Ping())))
        assert stranger.poll(5_000)
        stranger.close()
    assert isinstance(client.ask(pm.Start(session=opened.session)), pm.Done)
    client.ask(pm.CloseSession(session=opened.session))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_the_private_link_refuses_too(data):
    for decode in (wm.decode_to_worker, wm.decode_from_worker):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            decode(data)
