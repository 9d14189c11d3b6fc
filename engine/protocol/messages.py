"""Control and telemetry messages as msgspec Structs, and their encoding.

Every message is one MessagePack map with a `type`; unknown fields are ignored, wrong types are
refused with their path. Knows nothing of sockets. `engine/protocol.md` is the specification.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from engine.errors import EngineError
from engine.protocol.character import CharacterSpec, Framing, Settings

State = Literal["NOT_READY", "READY", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    pass


# --- control: studio -> engine ----------------------------------------------------------------
class Hello(Message, frozen=True, tag="hello", kw_only=True):
    major: int
    minor: int
    app_version: str = ""
    features: list[str] = []
    token: str = ""  # the engine's per-run token, when it asks for one


class InspectPicture(Message, frozen=True, tag="inspect_picture", kw_only=True):
    """Look at a picture without taking it on: faces, warnings, the reason of a refusal."""

    picture: bytes


class OpenSession(Message, frozen=True, tag="open_session", kw_only=True):
    model: str = "portrait"
    options: dict[str, float] = {}  # frames_per_chunk, ...


class LoadCharacter(Message, frozen=True, tag="load_character", kw_only=True):
    session: int
    spec: CharacterSpec
    picture: bytes


class SetSettings(Message, frozen=True, tag="set_settings", kw_only=True):
    session: int
    settings: Settings


class Start(Message, frozen=True, tag="start", kw_only=True):
    session: int
    at_sample: int = -1  # where the studio's clock is; -1: behind the last audio received


class Interrupt(Message, frozen=True, tag="interrupt", kw_only=True):
    """Raise the epoch: everything under way is dropped, the mouth goes to rest."""

    session: int
    at_sample: int = -1  # where the studio's clock is; -1: behind the last audio received


class Stop(Message, frozen=True, tag="stop", kw_only=True):
    """End speaking: RUNNING -> READY (the character stays)."""

    session: int


class CloseSession(Message, frozen=True, tag="close_session", kw_only=True):
    session: int


class Cancel(Message, frozen=True, tag="cancel", kw_only=True):
    """Cancel the request with that id (a character being loaded)."""

    request: int


class Ping(Message, frozen=True, tag="ping"):
    pass


class Doctor(Message, frozen=True, tag="doctor"):
    pass


class ListModels(Message, frozen=True, tag="list_models"):
    """Which models there are, built in and installed."""


class LoadModel(Message, frozen=True, tag="load_model", kw_only=True):
    """Read a model's weights now; the next session of that model finds them. Progress, cancel."""

    model: str


class UnloadModel(Message, frozen=True, tag="unload_model", kw_only=True):
    """Give the memory back."""

    model: str


class BenchModel(Message, frozen=True, tag="bench_model", kw_only=True):
    """How fast a model is here, decoding included. Progress, cancel."""

    model: str
    seconds: float = 10.0


# --- control: engine -> studio ----------------------------------------------------------------
class Welcome(Message, frozen=True, tag="welcome", kw_only=True):
    major: int
    minor: int
    engine_version: str
    features: list[str]
    models: list[str]
    audio: str  # endpoints of the other lanes
    frames: str
    telemetry: str
    monotonic_ns: int  # the engine's clock now: equal to ours on the same host
    pid: int


class FaceFound(msgspec.Struct, frozen=True):
    """One face in px of the upright picture."""

    x: float
    y: float
    width: float
    height: float
    score: float
    yaw_deg: float
    landmarks: list[tuple[float, float, float]] = []


class PictureInspected(Message, frozen=True, tag="picture_inspected", kw_only=True):
    width: int
    height: int
    faces: list[FaceFound]
    warnings: list[str]  # one line each, with the remedy
    refusal: str = ""  # not empty: cannot be used, and why
    automatic: Framing | None = None


class SessionOpened(Message, frozen=True, tag="session_opened", kw_only=True):
    session: int
    frames_per_chunk: int
    lookahead_samples: int
    synthetic: bool = False


class CharacterLoaded(Message, frozen=True, tag="character_loaded", kw_only=True):
    session: int
    name: str
    face: FaceFound
    warnings: list[str]
    automatic: Framing  # what automatic framing chose: where manual framing starts from
    ingest_ms: float
    cached: bool


class Done(Message, frozen=True, tag="done", kw_only=True):
    """Plain acknowledgement; after Interrupt and Start it names the clock to go on with."""

    epoch: int = 0
    first_sample: int = 0  # blocks before it are dropped


class DoctorReport(Message, frozen=True, tag="doctor_report", kw_only=True):
    rows: list[tuple[str, str, str, str]]  # (what, "ok" | "missing" | "warning", found, remedy)


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `problem`, `lacks` and `notes` are lines for people, with their remedies."""

    name: str  # what `open_session` takes
    path: str = ""  # of its files; empty: built in
    layout: str = ""  # "Self-Forcing generator_ema, Wan2.1 1.3B geometry, 30 layers, bf16, 2.8 GB"
    licence: str = ""  # as its files state it, to be shown before loading
    non_commercial: bool = False
    size_bytes: int = 0
    needs_bytes: int = 0  # of GPU memory (of memory, without a GPU)
    fits: bool = True
    fit: str = ""
    problem: str = ""  # not empty: cannot be loaded
    lacks: list[str] = []  # files without which it cannot run
    notes: list[str] = []
    loaded: bool = False
    synthetic: bool = False  # has no weights: random ones make noise, no face


class ModelList(Message, frozen=True, tag="model_list", kw_only=True):
    models: list[ModelInfo]
    folders: list[str]  # that were looked into
    device: str  # "NVIDIA H200", or "no GPU"
    free_bytes: int
    home: str = ""  # the user's own folder for models; it need not exist yet


class ModelLoaded(Message, frozen=True, tag="model_loaded", kw_only=True):
    model: str
    layout: str
    licence: str
    bytes: int  # on the device
    load_ms: float
    note: str = ""  # where FP8 weights are kept, and their size


class ModelBenched(Message, frozen=True, tag="model_benched", kw_only=True):
    model: str
    device: str
    fps: float  # decoding included, encoding of a file not
    first_chunk_ms: float
    stage_ms: dict[str, float]  # median a chunk: encode, denoise, decode
    frames: int
    seconds: float
    peak_bytes: int  # of GPU memory, 0 without one
    synthetic: bool


class Failure(Message, frozen=True, tag="failure", kw_only=True):
    code: str
    message: str
    hint: str = ""

    def error(self) -> EngineError:
        from engine.errors import CODES

        return EngineError(self.code if self.code in CODES else "internal", self.message, self.hint)


# --- telemetry: engine -> studio ----------------------------------------------------------------
class RankTime(msgspec.Struct, frozen=True):
    """What one rank of a session on several GPUs spent on a chunk."""

    rank: int
    stage: str  # "denoise" or "decode"
    device: str  # "cuda:2", "cpu"
    ms: float
    comm_ms: float = 0.0  # of it, between the ranks; 0: not measured


class ChunkTimings(Message, frozen=True, tag="chunk_timings", kw_only=True):
    """Where one chunk's time went, one message a chunk."""

    session: int
    epoch: int
    chunk_index: int
    first_frame: int
    frame_count: int
    stage_ms: dict[str, float]  # audio, encode, denoise, decode, ...
    capture_to_publish_ms: float = 0.0  # 0: the audio had no capture time
    queue_chunks: int = 0
    ranks: list[RankTime] = []  # with several ranks; since 1.1


class Counters(msgspec.Struct, frozen=True):
    """Since the session was opened; every queue that drops counts here."""

    frames_published: int = 0
    frames_dropped_late: int = 0
    frames_dropped_epoch: int = 0
    blocks_dropped_epoch: int = 0
    blocks_malformed: int = 0
    audio_gap_samples: int = 0
    audio_late_samples: int = 0  # came after their time was filled or passed
    audio_filled_samples: int = 0  # silence that the engine put in while the source was starved
    chunks_dropped: int = 0
    worker_restarts: int = 0


class SessionState(Message, frozen=True, tag="session_state", kw_only=True):
    """On every change and once a second: doubles as the heartbeat."""

    session: int
    state: State
    epoch: int
    counters: Counters
    code: str = ""  # with FAILED
    message: str = ""
    hint: str = ""
    age_s: float = 0.0
    synthetic: bool = False
    kernel_path: str = ""  # which kernels are in use, e.g. "cpu", "triton sm_90 fp8"
    ranks: str = ""  # e.g. "3 denoise ranks + 1 decode rank"; since 1.1


class EngineState(Message, frozen=True, tag="engine_state", kw_only=True):
    """Once a second, with or without sessions."""

    pid: int
    rss_bytes: int
    cpu_percent: float
    sessions: int
    worker: Literal["starting", "ready", "busy", "dead", "restarting"]
    uptime_s: float
    messages_refused: int = 0  # malformed, oversized or for a session that does not exist


class ProgressReport(Message, frozen=True, tag="progress", kw_only=True):
    request: int  # id of the control request it belongs to
    fraction: float
    what: str


class LogLine(Message, frozen=True, tag="log", kw_only=True):
    level: Literal["debug", "info", "warning", "error"]
    source: str
    text: str


Request = (
    Hello
    | InspectPicture
    | OpenSession
    | LoadCharacter
    | SetSettings
    | Start
    | Interrupt
    | Stop
    | CloseSession
    | Cancel
    | Ping
    | Doctor
    | ListModels
    | LoadModel
    | UnloadModel
    | BenchModel
)
Reply = (
    Welcome
    | PictureInspected
    | SessionOpened
    | CharacterLoaded
    | Done
    | DoctorReport
    | ModelList
    | ModelLoaded
    | ModelBenched
    | Failure
)
Telemetry = ChunkTimings | SessionState | EngineState | ProgressReport | LogLine


class RequestEnvelope(msgspec.Struct, frozen=True):
    """`id` names the request: a repeat of an id is answered from the reply cache, not run again."""

    id: int
    body: Request


class ReplyEnvelope(msgspec.Struct, frozen=True):
    id: int
    body: Reply


_encoder = msgspec.msgpack.Encoder()
_request = msgspec.msgpack.Decoder(RequestEnvelope)
_reply = msgspec.msgpack.Decoder(ReplyEnvelope)
_telemetry = msgspec.msgpack.Decoder(Telemetry)
T = TypeVar("T")


def encode(message: msgspec.Struct) -> bytes:
    return _encoder.encode(message)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes | memoryview) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EngineError("bad_message", f"unreadable message: {error}") from error


def decode_request(data: bytes | memoryview) -> RequestEnvelope:
    return _decode(_request, data)


def decode_reply(data: bytes | memoryview) -> ReplyEnvelope:
    return _decode(_reply, data)


def decode_telemetry(data: bytes | memoryview) -> Telemetry:
    return _decode(_telemetry, data)
