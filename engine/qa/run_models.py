"""The models that a run needs: found, refused before the first clip, with processes they can bear.

Knows nothing of clips or scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from engine.folders import Folders
from engine.qa.jobs import Configuration
from engine.qa.workers import check_count

LIGHT = ("portrait",)  # the only model of which every core can hold one
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")  # in the name of a folder


def check_models(configurations: Sequence[Configuration], folders: Folders) -> None:
    """Raises EngineError where a model is not there, is not whole or lacks an option: once and
    now, instead of once a clip."""
    from engine.model_factory import ModelFactory  # after the options: --help needs none of it

    for one in {(c.model, *sorted(c.options.items())): c for c in configurations}.values():
        if one.model:
            ModelFactory(one.model, dict(one.options), folders).close()


def processes(configurations: Sequence[Configuration], asked: int) -> int:
    """`asked`, or one a core; but one alone where a video model is held by each, with its weights.

    Raises EngineError("bad_input").
    """
    heavy = any(c.model not in LIGHT for c in configurations)
    return 1 if heavy and not asked else check_count(asked)


def plain_name(model: str) -> str:
    """What a configuration is called after a model that may be a path."""
    name = Path(model).name if Path(model).is_absolute() else model
    return UNSAFE.sub(" ", name).strip(" ._+-")[:64] or "model"
