"""One denoise forward as a CUDA graph, captured before a session and replayed all through it.

Everything that changes between replays (ring row, valid length, phases, timestep, latent, context)
lies in device buffers at fixed addresses. cuDNN's attention has no device-side length, so there is
one graph per window length (as many as ring slots), in one shared memory pool; nothing is captured
while a session runs. Knows nothing of what the forward computes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch


class Graphs:
    """Captured calls by key. Keys not captured run eagerly, which a session never meets."""

    def __init__(self) -> None:
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if torch.cuda.is_available() else None

    def __len__(self) -> int:
        return len(self._graphs)

    def capture(self, key: Hashable, call: Callable[[], object]) -> None:
        """Warm `call` twice on a side stream, then record it."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call()
            call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # another session of this process may be running: only this thread is being recorded
        mode = "thread_local"
        with torch.cuda.graph(graph, pool=self._pool, stream=side, capture_error_mode=mode):
            call()
        self._graphs[key] = graph

    def replay(self, key: Hashable) -> bool:
        """Run the graph of `key`; False when there is none."""
        graph = self._graphs.get(key)
        if graph is None:
            return False
        graph.replay()
        return True
