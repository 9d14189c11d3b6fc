"""What server and worker say to each other on their private link, as msgspec Structs.

Internal to one build of the engine: no versions. Knows nothing of sockets or models.
"""

from __future__ import annotations

import msgspec

from engine.protocol.character import CharacterSpec
from engine.protocol.messages import (
    CharacterLoaded,
    DoctorReport,
    ModelBenched,
    ModelList,
    ModelLoaded,
    PictureInspected,
    RankTime,
)


class Message(msgspec.Struct, frozen=True, tag_field="type"):
    pass


# --- server -> worker ---------------------------------------------------------------------------
class OpenModel(Message, frozen=True, tag="open_model"):
    """Import the model's classes; `options` go to the generator (frames_per_chunk, ...)."""

    model: str
    options: dict[str, float]


class LoadJob(Message, frozen=True, tag="load_job"):
    """Detect, crop, prepare a generator and a decoder; they wait for UseCharacter."""

    job: int
    session: int
    spec: CharacterSpec
    picture: bytes


class UseCharacter(Message, frozen=True, tag="use_character"):
    """Swap in what LoadJob `job` prepared; the next chunk begins a run."""

    job: int


class InspectJob(Message, frozen=True, tag="inspect_job"):
    job: int
    picture: bytes


class DoctorJob(Message, frozen=True, tag="doctor_job"):
    job: int


class ListModelsJob(Message, frozen=True, tag="list_models_job"):
    job: int


class LoadModelJob(Message, frozen=True, tag="load_model_job"):
    """Read a model's weights and hold them for an OpenModel to come."""

    job: int
    model: str


class BenchModelJob(Message, frozen=True, tag="bench_model_job"):
    job: int
    model: str
    seconds: float


class WarmJob(Message, frozen=True, tag="warm_job"):
    """Import what loading a character will need; no answer."""

    job: int = 0


class CancelJob(Message, frozen=True, tag="cancel_job"):
    job: int


class ApplySettings(Message, frozen=True, tag="apply_settings"):
    settings: dict[str, float]


class DropRun(Message, frozen=True, tag="drop_run"):
    """Chunks of an older run are not worth finishing; `reset` also forgets the pose."""

    run: int
    reset: bool


class ChunkJob(Message, frozen=True, tag="chunk_job"):
    """One `Chunk`; `run` counts restarts of the stream, `index` 0 begins a run."""

    run: int
    epoch: int
    index: int
    first_frame: int
    frame_count: int
    pcm: bytes  # float32


class FreeSlots(Message, frozen=True, tag="free_slots"):
    slots: list[int]


class Shutdown(Message, frozen=True, tag="shutdown"):
    pass


# --- worker -> server ---------------------------------------------------------------------------
class WorkerReady(Message, frozen=True, tag="worker_ready"):
    pid: int


class ModelOpened(Message, frozen=True, tag="model_opened"):
    frames_per_chunk: int
    lookahead_samples: int
    synthetic: bool
    kernel_path: str
    ranks: str = ""  # in words, with several


class JobProgress(Message, frozen=True, tag="job_progress"):
    job: int
    fraction: float
    what: str


class JobDone(Message, frozen=True, tag="job_done"):
    job: int
    reply: (
        CharacterLoaded | PictureInspected | DoctorReport | ModelList | ModelLoaded | ModelBenched
    )


class JobFailed(Message, frozen=True, tag="job_failed"):
    """Also the answer to an OpenModel that failed, with job 0."""

    job: int
    code: str
    message: str
    hint: str


class FrameDone(Message, frozen=True, tag="frame_done"):
    """Frame `frame_index` lies in slot `slot` of the frame bus, until FreeSlots names it."""

    run: int
    chunk_index: int
    frame_index: int
    slot: int


class ChunkDone(Message, frozen=True, tag="chunk_done"):
    """All frames of a chunk were announced."""

    run: int
    epoch: int
    chunk_index: int
    first_frame: int
    frame_count: int
    stage_ms: dict[str, float]
    ranks: list[RankTime] = []


class Heartbeat(Message, frozen=True, tag="heartbeat"):
    """Twice a second. `busy_s`: for how long each thread has been in its present step."""

    busy_s: dict[str, float]


class WorkerFailed(Message, frozen=True, tag="worker_failed"):
    """Last words: why this worker is about to exit."""

    code: str
    message: str
    hint: str


ToWorker = (
    OpenModel | LoadJob | UseCharacter | InspectJob | DoctorJob | ListModelsJob | LoadModelJob
    | BenchModelJob | WarmJob | CancelJob
    | ApplySettings | DropRun | ChunkJob | FreeSlots | Shutdown
)  # fmt: skip
FromWorker = (
    WorkerReady | ModelOpened | JobProgress | JobDone | JobFailed | FrameDone | ChunkDone
    | Heartbeat | WorkerFailed
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
decode_to_worker = msgspec.msgpack.Decoder(ToWorker).decode
decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode
