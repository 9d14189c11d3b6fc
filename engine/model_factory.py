"""From the name of a model to its classes and to a prepared generator and decoder.

Knows nothing of processes or sockets. A model's classes are imported on first use.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from typing import Any

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

# model -> "module:function" with the signature of engine.character.load_character
CHARACTER_LOADERS: dict[str, str] = {
    name: "engine.models.video_character:load_character"
    for name in ("avatar-57b", "avatar-5b", "tiny")
}
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
        ranks: RankStart | None = None,
    ) -> None:  # fmt: skip
        """`ranks` gives a session several, for all of its characters; None: all in this process."""
        check_model(model)
        self._folders = folders
        self._ranks = ranks
        self.group: RankGroup | None = None
        self.model = model
        self._generator_class = resolve(MODELS[model][0])
        self._decoder_class = resolve(MODELS[model][1])
        self.options = _accepted(self._generator_class, model, options)

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
        return self._generator_class(**self.options)

    def decoder(self) -> Decoder:
        takes_cache = "cache_dir" in inspect.signature(self._decoder_class).parameters
        keywords = {"cache_dir": self._folders.cache} if takes_cache else {}
        return self._decoder_class(**keywords)

    def load(
        self,
        picture: bytes,
        spec: CharacterSpec,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> tuple[Any, Models]:
        """The Character of a picture and models that took it on. Raises EngineError."""
        loader = resolve(CHARACTER_LOADERS.get(self.model, DEFAULT_LOADER))
        character = loader(
            picture, spec, self._folders.cache, lambda done, what: progress(0.8 * done, what),
            cancelled, self._folders.models,
        )  # fmt: skip
        models = self.make()
        settings = msgspec.structs.asdict(spec.settings)
        models.generator.prepare(
            character, settings, lambda done, what: progress(0.8 + 0.1 * done, what)
        )
        models.decoder.prepare(
            character, settings, lambda done, what: progress(0.9 + 0.1 * done, what)
        )
        if cancelled():
            raise EngineError("cancelled", "loading the character was cancelled")
        return character, models


def _accepted(cls: Any, model: str, options: dict[str, float]) -> dict[str, float]:
    """Options as keyword arguments; an unknown one is refused with the list of known ones."""
    known = [name for name in inspect.signature(cls).parameters if name != "self"]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise EngineError(
            "bad_input",
            f"model {model!r} has no option {unknown[0]!r}",
            f"it has {', '.join(known) or 'none'}",
        )
    return {name: int(v) if float(v).is_integer() else v for name, v in options.items()}
