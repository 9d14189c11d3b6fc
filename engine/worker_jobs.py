"""The slow requests of a worker (load, inspect, doctor) on a thread of their own, one at a time.

Knows nothing of sockets: answers leave through `send`.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from engine import worker_messages as wm
from engine.chunk_loop import Models
from engine.errors import EngineError
from engine.folders import Folders
from engine.model_factory import (
    DEFAULT_INSPECTOR,
    DEFAULT_LOADER,
    LOADED,
    ModelFactory,
    resolve,
)
from engine.models import MODELS
from engine.models.base import Progress
from engine.protocol.messages import CharacterLoaded, DoctorReport
from engine.rank_start import RankStart

Answered = (
    wm.LoadJob | wm.InspectJob | wm.DoctorJob | wm.ListModelsJob | wm.LoadModelJob
    | wm.BenchModelJob
)  # fmt: skip
Job = Answered | wm.OpenModel | wm.WarmJob
WARM = (DEFAULT_LOADER, DEFAULT_INSPECTOR, MODELS["portrait"][0], MODELS["portrait"][1])


class JobThread:
    """`put` a job; progress, result or failure leave through `send`, in that order."""

    def __init__(
        self,
        folders: Folders,
        send: Callable[[Any], None],
        failed: Callable[[BaseException], None],
        ranks: RankStart | None = None,
    ) -> None:
        self._folders, self._ranks = folders, ranks
        self._send, self._failed = send, failed
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._since = 0.0  # when the present job began
        self.factory: ModelFactory | None = None
        self._weights: Any = None  # a LoadedWeights, once a public model was asked for
        self.loaded: dict[int, Models] = {}  # job -> models that wait for UseCharacter
        threading.Thread(target=self._body, name="jobs", daemon=True).start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def cancel(self, job: int) -> None:
        self._cancelled.add(job)

    def busy_s(self, now: float) -> float:
        since = self._since
        return now - since if since else 0.0

    def close(self) -> None:
        """End what the model has started."""
        if self.factory is not None:
            self.factory.close()

    def _body(self) -> None:
        try:
            while True:
                job = self._jobs.get()
                self._since = time.monotonic()
                self._run(job)
                self._since = 0.0
        except Exception as error:  # the top of the job thread
            self._failed(error)

    def _run(self, job: Job) -> None:
        if isinstance(job, wm.WarmJob):
            return _warm()
        if isinstance(job, wm.OpenModel):
            return self._open(job)
        try:
            self._send(wm.JobDone(job.job, self._result(job)))
        except EngineError as error:
            self._send(wm.JobFailed(job.job, error.code, error.message, error.hint))
            if self.factory is not None and self.factory.is_dead:
                self._failed(error)
        finally:
            self._cancelled.discard(job.job)
        return None

    def _open(self, job: wm.OpenModel) -> None:
        try:
            if self._weights is not None and self._weights.name != job.model:
                self._weights.clear()
            self.factory = ModelFactory(
                job.model, job.options, self._folders, self._ranks, self._weights
            )
            generator = self.factory.make().generator
        except EngineError as error:
            self._send(wm.JobFailed(0, error.code, error.message, error.hint))
            return
        except (ImportError, OSError, ValueError) as error:
            text = f"model {job.model!r} cannot be loaded: {error}"
            self._send(wm.JobFailed(0, "missing_asset", text, "run `avatar-engine doctor`"))
            return
        self._send(
            wm.ModelOpened(
                generator.frames_per_chunk, generator.lookahead_samples,
                bool(getattr(generator, "synthetic", False)),
                str(getattr(generator, "kernel_path", "cpu")), self.factory.ranks_sentence(),
            )
        )  # fmt: skip

    def _result(self, job: Answered) -> Any:
        if job.job in self._cancelled:
            raise EngineError("cancelled", "the request was cancelled before it began")
        match job:
            case wm.LoadJob():
                return self._load(job)
            case wm.InspectJob():
                return resolve(DEFAULT_INSPECTOR)(job.picture, self._folders.models)
            case wm.DoctorJob():
                return DoctorReport(rows=resolve("engine.doctor:examine")(self._folders))
            case wm.ListModelsJob():
                list_models = resolve("engine.model_jobs:list_models")
                return list_models(self._folders, self._held())
            case wm.LoadModelJob():
                load = resolve("engine.model_jobs:load_model")
                return load(job.model, self._folders, self._held(), *self._watched(job.job))
            case wm.BenchModelJob():
                bench = resolve("engine.model_bench:bench_model")
                work = self._watched(job.job)
                return bench(job.model, job.seconds, self._folders, self._held(), *work)

    def _held(self) -> Any:
        """Weights that this process holds: what `engine.model_jobs` works on."""
        if self._weights is None:
            self._weights = resolve(LOADED)()
        return self._weights

    def _watched(self, job: int) -> tuple[Progress, Callable[[], bool]]:
        """(progress, cancelled) of a model's job."""
        if self._ranks is not None:
            raise EngineError(
                "not_ready", "on several GPUs a model is read when its session opens",
                "open a session, or serve with --gpus 1+0",
            )  # fmt: skip
        return (
            lambda done, what: self._send(wm.JobProgress(job, float(done), what)),
            lambda: job in self._cancelled,
        )

    def _load(self, job: wm.LoadJob) -> CharacterLoaded:
        if self.factory is None:
            raise EngineError("not_ready", "no model is open", "open a session first")
        begun = time.monotonic()
        character, models = self.factory.load(
            job.picture,
            job.spec,
            lambda done, what: self._send(wm.JobProgress(job.job, float(done), what)),
            lambda: job.job in self._cancelled,
        )
        self.loaded = {job.job: models}
        return CharacterLoaded(
            session=job.session,
            name=job.spec.name,
            face=character.face,
            warnings=list(character.warnings),
            automatic=character.automatic,
            ingest_ms=round((time.monotonic() - begun) * 1000, 1),
            cached=bool(character.cached),
        )


def _warm() -> None:
    """1 s of imports that the first character would otherwise wait for."""
    for target in WARM:
        with contextlib.suppress(ImportError, EngineError):  # whoever needs it says what is missing
            resolve(target)
