"""From "3+1" and a model to a started `RankGroup`. Knows nothing of sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.errors import EngineError
from engine.folders import Folders
from engine.framebus import FrameBus
from engine.gpus import Gpus
from engine.rank_group import RankGroup
from engine.rank_process import RankPlan


@dataclass(frozen=True, slots=True)
class RankStart:
    """What is known before the model is: where ranks run, write pictures and report."""

    gpus: Gpus
    bus: FrameBus
    folders: Folders
    model_module: str
    log: Callable[[str], None]
    failed: Callable[[EngineError], None]  # the group died while nobody waited for it

    def start(self, model: str, options: dict[str, float], own: Any) -> RankGroup:
        """`own` is rank 0's generator, made with the same options."""
        where = self.gpus.where(own.device.type)
        plan = RankPlan(self.gpus, model, options, self.folders, self.model_module, where)
        group = RankGroup(plan, self.bus, own, self.log, self.failed)
        group.start()
        return group
