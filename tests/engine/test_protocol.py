"""Every message of the wire: round trip, unknown fields, its place in the specification."""

from __future__ import annotations

import typing
from pathlib import Path

import msgspec
import numpy as np
import pytest

import engine.protocol as wire
from engine import worker_messages as wm
from engine.errors import CODES, EngineError
from engine.protocol import audio_block, frame
from engine.protocol import messages as pm
from engine.protocol.audio_block import AudioBlock
from engine.protocol.frame import Frame

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {
    int: 3,
    str: "some words",
    bool: True,
    float: 0.5,
    bytes: b"\0\1",
    list[str]: ["a"],
    dict[str, float]: {"k": 1.5},
    list[int]: [1, 2],
    list[tuple[float, float, float]]: [(1.0, 2.0, 3.0)],
    list[tuple[str, str, str, str]]: [("a", "ok", "b", "c")],
}


def example(kind):
    """A value of a type, with every field filled."""
    if kind in EXAMPLES:
        return EXAMPLES[kind]
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return arguments[-1]
    if typing.get_origin(kind) is list:
        return [example(arguments[0])]
    if arguments:  # X | None, or a union of messages
        return example(arguments[0])
    hints = typing.get_type_hints(kind)
    return kind(**{field: example(hints[field]) for field in kind.__struct_fields__})


def members(union):
    return typing.get_args(union)


ALL = [*members(pm.Request), *members(pm.Reply), *members(pm.Telemetry)]


@pytest.mark.parametrize("kind", ALL, ids=lambda k: k.__name__)
def test_round_trip(kind):
    message = example(kind)
    if kind in members(pm.Request):
        envelope = pm.RequestEnvelope(9, message)
        assert pm.decode_request(pm.encode(envelope)) == envelope
    elif kind in members(pm.Reply):
        envelope = pm.ReplyEnvelope(9, message)
        assert pm.decode_reply(pm.encode(envelope)) == envelope
    else:
        assert pm.decode_telemetry(pm.encode(message)) == message


@pytest.mark.parametrize("kind", members(wm.ToWorker), ids=lambda k: k.__name__)
def test_round_trip_to_the_worker(kind):
    assert wm.decode_to_worker(wm.encode(example(kind))) == example(kind)


@pytest.mark.parametrize("kind", members(wm.FromWorker), ids=lambda k: k.__name__)
def test_round_trip_from_the_worker(kind):
    assert wm.decode_from_worker(wm.encode(example(kind))) == example(kind)


def test_every_message_is_in_the_specification():
    text = (ROOT / "engine/protocol.md").read_text()
    for kind in ALL:
        assert f"`{kind.__struct_config__.tag}`" in text, kind
    for lane in wire.LANES:
        assert f"| {lane} |" in text
    assert f"version {wire.MAJOR}.{wire.MINOR}" in text
    for counter in pm.Counters.__struct_fields__:
        assert counter in text, counter


def test_unknown_fields_are_ignored_and_wrong_types_refused_with_their_path():
    data = {"id": 1, "body": {"type": "start", "session": 5, "colour": "blue"}, "extra": [1]}
    assert pm.decode_request(msgspec.msgpack.encode(data)).body.session == 5
    data["body"]["session"] = "five"
    with pytest.raises(EngineError, match=r"\$.body.session"):
        pm.decode_request(msgspec.msgpack.encode(data))


def test_frame_and_audio_block_round_trip():
    pixels = np.random.default_rng(0).integers(0, 255, (1088, 704, 4), np.uint8)
    told = Frame(1, 2, 3, 6000, 4, 5, pixels, synthetic=True, idle=True)
    back = frame.decode(frame.encode(told))
    assert np.array_equal(back.pixels, pixels)
    assert (back.session, back.epoch, back.frame_index, back.pts) == (1, 2, 3, 6000)
    assert (back.capture_time_ns, back.publish_time_ns) == (4, 5) and back.idle and back.synthetic
    block = AudioBlock(1, 2, 3, 4, np.linspace(-1, 1, 960, dtype=np.float32), last=True)
    again = audio_block.decode(audio_block.encode(block))
    assert np.array_equal(again.samples, block.samples) and again.last
    assert (again.session, again.epoch, again.first_sample, again.capture_time_ns) == (1, 2, 3, 4)


def test_a_failure_becomes_an_error_again():
    error = pm.Failure(code="no_face", message="m", hint="h").error()
    assert (error.code, str(error)) == ("no_face", "m: h")
    assert pm.Failure(code="from the future", message="m").error().code in CODES
