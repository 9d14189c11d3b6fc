"""Entry point of `avatar-engine`; the only place of the engine that touches the environment."""

from __future__ import annotations

import os
import sys
import threading

# One BLAS thread: the products are small, and a thread pool per library would fight for the cores
# that the generator and decoder threads need. Has to be set before numpy is imported.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


def main() -> int:
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    from engine.cli import run

    status = run(sys.argv[1:], os.environ)
    if any(thread.name == "rank 0" for thread in threading.enumerate()):
        # It waits on its GPU for a rank that was killed: ending in order would wait with it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
