"""Entry point of `avatar-engine`; the only place of the engine that touches the environment."""

from __future__ import annotations

import os
import sys

# One BLAS thread: the products are small, and a thread pool per library would fight for the cores
# that the generator and decoder threads need. Has to be set before numpy is imported.
THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


def main() -> int:
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    from engine.cli import run

    return run(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
