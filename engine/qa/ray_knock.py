"""Does a Ray cluster answer? `python -m engine.qa.ray_knock ADDRESS`: one line, exit status.

A process of its own, which its starter may end: Ray's own attempts cannot be interrupted.
"""

from __future__ import annotations

import logging
import os
import sys

from engine.errors import first_line

# No usage is told to anybody, and what Ray would print on stdout (of a lost node: 40 lines of its
# log) is not printed: we say ourselves what is lost.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "1", "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",
}  # fmt: skip


def main(address: str) -> int:
    """0 where this process could join; 1 and the reason on stdout where it could not."""
    os.environ.update(QUIET)
    import ray
    from ray.exceptions import RayError

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        ray.nodes()
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        print(first_line(error))  # noqa: T201
        return 1
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
