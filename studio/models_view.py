"""ModelsView: what the models panel shows, as frozen plain data. Knows no widgets and no wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.protocol.messages import ModelInfo
from studio.measurements import Measurement

WorkKind = Literal["load", "unload", "measure", "use"]
NO_GPU = "no GPU"  # what `ModelList.device` says then


@dataclass(frozen=True, slots=True)
class Work:
    """What the engine does for the page now; `fraction` 0..1, 0 while it is not known."""

    kind: WorkKind
    model: str
    fraction: float = 0.0
    what: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of the last request about a model, to be shown with it."""

    model: str
    text: str
    tone: Literal["info", "warning", "danger"] = "info"


@dataclass(frozen=True, slots=True)
class ModelsView:
    """`models` is empty until the engine has listed them; `trouble` is why it could not."""

    ready: bool = False  # the engine answers
    supported: bool = True  # it knows of models
    local: bool = True  # it is our own process: its folders can be changed
    version: str = ""
    listing: bool = False
    models: tuple[ModelInfo, ...] = ()
    folders: tuple[str, ...] = ()  # looked into, existing ones
    added: tuple[str, ...] = ()  # those that a person added here
    home: str = ""
    device: str = ""
    free_bytes: int = 0
    on_stage: str = ""
    live: bool = False  # it is talking
    work: Work | None = None
    told: Told | None = None
    trouble: str = ""
    measured: dict[str, Measurement] = field(default_factory=dict)

    def find(self, name: str) -> ModelInfo | None:
        return next((model for model in self.models if model.name == name), None)

    @property
    def installed(self) -> tuple[ModelInfo, ...]:
        """Those with files of their own."""
        return tuple(model for model in self.models if model.path)
