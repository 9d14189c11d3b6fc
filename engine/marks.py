"""Where the milliseconds of a forward go: device events between named stretches.

Knows nothing of what is measured. Without CUDA, or as `NO_MARKS`, marking costs one call.
"""

from __future__ import annotations

from collections import defaultdict

import torch


class Marks:
    """Call with a name at the start of each stretch and "end" after the last; then ask `sums`.

    `external` events are recorded by a captured graph at each replay.
    """

    def __init__(self, external: bool = False) -> None:
        self.external = external
        self.stretches: list[tuple[str, torch.cuda.Event]] = []

    def __call__(self, name: str) -> None:
        event = torch.cuda.Event(enable_timing=True, external=self.external)
        event.record()
        self.stretches.append((name, event))

    def clear(self) -> None:
        self.stretches.clear()

    def sums(self, whole_ms: float) -> dict[str, float]:
        """Milliseconds by name. Call after synchronising. `whole_ms` is the time of the same work
        without marks: what the events themselves took is spread evenly and taken off. Empty
        when that leaves less than nothing: marking then changed what it measured, as it does with
        NCCL's kernels in a graph.
        """
        totals: dict[str, float] = defaultdict(float)
        marked = self.stretches[0][1].elapsed_time(self.stretches[-1][1])
        cost = max(0.0, marked - whole_ms) / (len(self.stretches) - 1)
        pairs = zip(self.stretches, self.stretches[1:], strict=False)
        for (name, event), (_, after) in pairs:
            totals[name] += event.elapsed_time(after) - cost
        trusted = min(totals.values()) > -0.005 * whole_ms
        return dict(totals) if trusted else {}


class _NoMarks(Marks):
    def __call__(self, name: str) -> None:
        pass


NO_MARKS = _NoMarks()
