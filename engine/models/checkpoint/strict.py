"""Whether a file's tensors are exactly the ones a model has. Knows nothing of files' formats."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from engine.errors import EngineError
from engine.models.checkpoint.tensor_file import first_five

Shapes = Mapping[str, tuple[int, ...]]


def require_exact(what: str, found: Shapes, wanted: Shapes, optional: Collection[str] = ()) -> None:
    """Raises EngineError("bad_checkpoint") naming the first five missing, unexpected and misshapen.

    `what` begins the sentence ("the model in wan/"); `optional` names may be missing.
    """
    missing = set(wanted) - set(found) - set(optional)
    unexpected = set(found) - set(wanted)
    misshapen = [
        f"{name} {list(found[name])} instead of {list(wanted[name])}"
        for name in set(found) & set(wanted)
        if tuple(found[name]) != tuple(wanted[name])
    ]
    problems = [
        f"{len(names)} tensors are {how} ({first_five(names)})"
        for how, names in (
            ("missing", missing), ("unexpected", unexpected), ("misshapen", misshapen)
        )
        if names
    ]  # fmt: skip
    if problems:
        raise EngineError(
            "bad_checkpoint", f"{what} is not loaded: {', '.join(problems)}",
            "use a complete file of a layout that the documentation lists",
        )  # fmt: skip
