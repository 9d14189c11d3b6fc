"""An installed public model as makers of a `VideoGenerator` and a `VideoDecoder`.

Knows nothing of sessions or processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.folders import Folders
from engine.models.checkpoint_conditioning import PROMPT, CheckpointConditioning
from engine.models.inventory import find, open_entry, places_of
from engine.models.loaded import LoadedWeights
from engine.models.video import VideoDecoder, VideoGenerator


class CheckpointVideo:
    """`generator` and `decoder` share one `CheckpointConditioning` and its weights."""

    def __init__(
        self, name: str, folders: Folders, loaded: LoadedWeights, cancelled: Callable[[], bool]
    ) -> None:
        """Raises EngineError for a model that is not installed, not whole, or lacks a part."""
        entry = find(name, folders)
        model, recipe = open_entry(entry.path)
        self.line, self.licence = entry.line, entry.licence.line
        named = replace(model, config=replace(model.config, name=entry.name))
        self.name, self._tiny = entry.name, recipe.decoder == "taehv"
        self.conditioning = CheckpointConditioning(
            named, places_of(entry.path, folders), folders.cache, loaded, cancelled,
            recipe.prompt or PROMPT,
        )  # fmt: skip

    def generator(self, seed: int = 1) -> VideoGenerator:
        return VideoGenerator(self.conditioning, seed)

    def decoder(self, fp8: int = 0, tiny: int = 0) -> VideoDecoder:
        """`tiny`: the small decoder of the user's taew file, where the recipe does not say so."""
        return VideoDecoder(self.conditioning, bool(fp8), bool(tiny) or self._tiny)
