"""What rank 0 and the processes of the other ranks say to each other, as msgspec Structs.

A call carries the name of a method of `Generator` or `Decoder` as its tag: every rank hosts one of
the two, and rank 0 repeats each call on all of them in one order. Internal to one build: no
versions. Knows nothing of sockets.
"""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    pass


# --- rank 0 -> rank -----------------------------------------------------------------------------
class Join(Message, frozen=True, tag="join"):
    """Meet the other denoise ranks. `meeting`: a path that all of them have."""

    rank: int
    ranks: int
    meeting: str
    timeout_s: float


class Prepare(Message, frozen=True, tag="prepare"):
    """Take on a character: its picture [height, width, 4] BGRA."""

    pixels: bytes
    height: int
    width: int
    settings: dict[str, float]


class Step(Message, frozen=True, tag="step"):
    """One `Chunk` for every denoise rank."""

    epoch: int
    index: int
    first_frame: int
    frame_count: int
    pcm: bytes  # float32


class Decode(Message, frozen=True, tag="decode"):
    """Latents lie in `place` of the latents buffer; picture i belongs into `slots[i]`."""

    epoch: int
    chunk_index: int
    first_frame: int
    frame_count: int
    place: int
    shape: list[int]
    dtype: str
    is_torch: bool
    slots: list[int]


class SetSettings(Message, frozen=True, tag="set_settings"):
    settings: dict[str, float]


class Interrupt(Message, frozen=True, tag="interrupt"):
    pass


class Reset(Message, frozen=True, tag="reset"):
    pass


class Close(Message, frozen=True, tag="close"):
    """Leave the group and exit."""


Body = Join | Prepare | Step | Decode | SetSettings | Interrupt | Reset | Close


class Call(msgspec.Struct, frozen=True):
    """Calls to one rank are numbered without a gap: a lost one would part the ranks for good."""

    number: int
    body: Body


# --- rank -> rank 0 -----------------------------------------------------------------------------
class RankReady(Message, frozen=True, tag="rank_ready"):
    """Everything is imported and the model's class is there."""

    pid: int
    device: str


class RankBeat(Message, frozen=True, tag="rank_beat"):
    """Twice a second. `busy_s`: for how long the present call has run."""

    busy_s: float


class RankProgress(Message, frozen=True, tag="rank_progress"):
    fraction: float
    what: str


class RankDone(Message, frozen=True, tag="rank_done"):
    """The call of that number is done; `ms` by stage, of those that measure."""

    number: int
    ms: dict[str, float]


class RankFailed(Message, frozen=True, tag="rank_failed"):
    """Last words."""

    code: str
    message: str
    hint: str


FromRank = RankReady | RankBeat | RankProgress | RankDone | RankFailed

encode = msgspec.msgpack.Encoder().encode
decode_call = msgspec.msgpack.Decoder(Call).decode
decode_from_rank = msgspec.msgpack.Decoder(FromRank).decode
