"""From the name of a model to its classes and to a prepared generator and decoder.

Knows nothing of processes or sockets. A model's classes are imported on first use.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from engine.chunk_loop import Models
from engine.errors import EngineError
from engine.folders import Folders
from engine.models import MODELS
from engine.models.base import Decoder, Generator, Progress
from engine.protocol.character import CharacterSpec
from engine.rank_group import RankGroup
from engine.rank_models import RankedDecoder, RankedGenerator
from engine.rank_start import RankStart

if TYPE_CHECKING:  # torch is imported by who asks for one of these models
    from engine.models.checkpoint_video import CheckpointVideo
    from engine.models.loaded import LoadedWeights

# model -> "module:function" with the signature of engine.character.load_character
VIDEO_LOADER = "engine.models.video_character:load_character"  # also of installed models
CHARACTER_LOADERS: dict[str, str] = dict.fromkeys(("avatar-57b", "avatar-5b", "tiny"), VIDEO_LOADER)
CHECKPOINT = "engine.models.checkpoint_video:CheckpointVideo"
LOADED = "engine.models.loaded:LoadedWeights"
DEFAULT_LOADER = "engine.character:load_character"
DEFAULT_INSPECTOR = "engine.portrait.face_check:inspect"


def resolve(target: str) -> Any:
    """The object that "module:name" names."""
    module, name = target.split(":")
    return getattr(importlib.import_module(module), name)


def check_model(model: str) -> None:
    """Raises EngineError("unknown_model") naming the nearest one."""
    if model not in MODELS:
        near = difflib.get_close_matches(model, MODELS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(MODELS)}"
        raise EngineError("unknown_model", f"no model is called {model!r}", hint)


class ModelFactory:
    """Makes generators and decoders of one model with one set of options."""

    def __init__(
        self, model: str, options: dict[str, float], folders: Folders,
        ranks: RankStart | None = None, loaded: LoadedWeights | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`ranks` gives a session several, for all of its characters; None: all in this process.

        `loaded` keeps a public model's weights between characters. Raises EngineError for a model
        that is neither built in nor installed, or that is not whole.
        """
        self._folders = folders
        self._cancelled = cancelled  # then that of the character being loaded
        self._ranks = ranks
        self.group: RankGroup | None = None
        self.model = model
        self.line = self.licence = ""  # what an installed model is, and its terms, for people
        self._generator_class: Any
        self._decoder_class: Any
        if model in MODELS:
            self._generator_class, self._decoder_class = map(resolve, MODELS[model])
        else:
            video = self._installed(loaded)
            self._generator_class, self._decoder_class = video.generator, video.decoder
            self.line, self.licence = video.line, video.licence
        self.options = _accepted((self._generator_class, self._decoder_class), model, options)

    def _installed(self, loaded: LoadedWeights | None) -> CheckpointVideo:
        if not any(path.exists() for path in self._folders.checkpoints):
            check_model(self.model)
        kept = loaded if loaded is not None else resolve(LOADED)()
        return resolve(CHECKPOINT)(self.model, self._folders, kept, lambda: self._cancelled())

    def make(self) -> Models:
        """A new, unprepared pair. With ranks the first call starts them, without waiting."""
        if self.group is None:
            own = self.generator()
            if self._ranks is None or not hasattr(own, "join"):
                return Models(own, self.decoder())
            self.group = self._ranks.start(self.model, self.options, own)
        decoder = RankedDecoder(self.group) if self.group.plan.gpus.decode else self.decoder()
        return Models(RankedGenerator(self.group), decoder)

    @property
    def is_dead(self) -> bool:
        """A rank has ended, and with it this process's use."""
        return self.group is not None and self.group.error is not None

    def ranks_sentence(self) -> str:
        """On how many ranks it runs, in words; empty on one."""
        if self.group is None:
            return ""
        return self.group.plan.gpus.sentence(self.group.own.device.type)

    def close(self) -> None:
        """End the ranks, if there are any."""
        if self.group is not None:
            self.group.close()

    def generator(self) -> Generator:
        return self._generator_class(**_own(self._generator_class, self.options))

    def decoder(self) -> Decoder:
        takes_cache = "cache_dir" in inspect.signature(self._decoder_class).parameters
        keywords = {"cache_dir": self._folders.cache} if takes_cache else {}
        return self._decoder_class(**keywords, **_own(self._decoder_class, self.options))

    def load(
        self,
        picture: bytes,
        spec: CharacterSpec,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> tuple[Any, Models]:
        """The Character of a picture and models that took it on. Raises EngineError."""
        own = DEFAULT_LOADER if self.model in MODELS else VIDEO_LOADER
        loader = resolve(CHARACTER_LOADERS.get(self.model, own))
        # finding a face takes as long as the portrait's models; beside weights a picture is nothing
        begin = 0.8 if own == DEFAULT_LOADER else 0.02
        rest = 1 - begin
        self._cancelled = cancelled
        character = loader(
            picture, spec, self._folders.cache, lambda done, what: progress(begin * done, what),
            cancelled, self._folders.models,
        )  # fmt: skip
        models = self.make()
        settings = msgspec.structs.asdict(spec.settings)
        models.generator.prepare(
            character, settings, lambda done, what: progress(begin + 0.9 * rest * done, what)
        )
        models.decoder.prepare(
            character, settings, lambda done, what: progress(1 + (done - 1) * 0.1 * rest, what)
        )
        if cancelled():
            raise EngineError("cancelled", "loading the character was cancelled")
        return character, models


def _own(cls: Any, options: dict[str, float]) -> dict[str, float]:
    """Those that a generator or decoder takes."""
    return {name: v for name, v in options.items() if name in inspect.signature(cls).parameters}


def _accepted(classes: tuple[Any, ...], model: str, options: dict[str, float]) -> dict[str, float]:
    """Options as keyword arguments; an unknown one is refused with the list of known ones."""
    taken = [name for cls in classes for name in inspect.signature(cls).parameters]
    known = [name for name in dict.fromkeys(taken) if name not in ("self", "cache_dir")]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise EngineError(
            "bad_input",
            f"model {model!r} has no option {unknown[0]!r}",
            f"it has {', '.join(known) or 'none'}",
        )
    return {name: int(v) if float(v).is_integer() else v for name, v in options.items()}
