"""A clip and a configuration become a video file, by the same parts as `avatar-engine render`.

The character's own settings hold, but for the configuration's and the seed. Knows nothing of
scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engine.audio_file import AudioFile
from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.model_factory import LOADED, ModelFactory, resolve
from engine.models import MODELS
from engine.mp4 import Mp4Writer
from engine.protocol.character import CharacterSpec, Settings
from engine.protocol.character_file import read_character
from engine.qa.drives import TOOLS, speech_of
from engine.qa.jobs import Job
from engine.render import OFFLINE, SYNTHETIC, Render

if TYPE_CHECKING:  # torch is imported by who asks for a public model
    from engine.models.loaded import LoadedWeights


@dataclass(slots=True)
class Weights:
    """A public model's weights, kept from clip to clip: 28 GB are read once, not 53 times."""

    loaded: LoadedWeights | None = None

    def of(self, model: str) -> LoadedWeights | None:
        """None for models that come without files."""
        if model not in MODELS and self.loaded is None:
            self.loaded = resolve(LOADED)()
        return None if model in MODELS else self.loaded


@dataclass(frozen=True, slots=True)
class Rendered:
    """The file, and what the time went into: milliseconds a frame (median) by stage."""

    frames: int
    stage_ms: dict[str, float]


def settings_of(base: Settings, job: Job) -> Settings:
    """Raises EngineError("bad_input") for a setting that there is not, or out of 0 to 2."""
    values = msgspec.structs.asdict(base) | {"seed": job.seed}
    for name, value in job.configuration.settings.items():
        if name not in values or name == "seed":
            known = ", ".join(n for n in values if n != "seed")
            raise EngineError("bad_input", f"there is no setting {name!r}", f"one of {known}")
        if not 0 <= value <= 2:
            raise EngineError("bad_input", f"setting {name}={value:g} is out of range", "0 to 2")
        values[name] = value
    return Settings(**values)


def subject(job: Job) -> tuple[CharacterSpec, bytes]:
    """The character with the settings of the job."""
    spec, picture = read_character(Path(job.character_file))
    return msgspec.structs.replace(spec, settings=settings_of(spec.settings, job)), picture


def render_clip(
    job: Job, out: Path, folders: Folders, bus: FrameBus, weights: Weights | None = None
) -> Rendered:
    """Writes the MP4. Raises EngineError; nothing broken stays. `bus` may be used again."""
    spec, picture = subject(job)
    options = OFFLINE.get(job.configuration.model, {}) | job.configuration.options
    model = job.configuration.model
    factory = ModelFactory(model, dict(options), folders, loaded=(weights or Weights()).of(model))
    audio: AudioFile | None = None
    try:
        audio = AudioFile(Path(job.audio))
        _, models = factory.load(picture, spec, lambda done, what: None, lambda: False)
        if job.configuration.drive != "audio":
            speech_of(job, models.generator, folders.cache / TOOLS)
        comment = SYNTHETIC if getattr(models.generator, "synthetic", False) else ""
        run = Render(models, Mp4Writer(out, comment), bus)
        try:
            run.run(audio, lambda frames: None)
        except BaseException:  # also Ctrl-C
            run.abort()
            raise
    finally:
        if audio is not None:
            audio.close()
        factory.close()
    return Rendered(run.frames, {n: s["p50_ms"] for n, s in run.stats.summary().items()})
