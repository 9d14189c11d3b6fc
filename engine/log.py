"""Log lines of the engine's commands: to stderr, one format. Knows nothing of telemetry."""

from __future__ import annotations

import logging
import sys

LOG = logging.getLogger("avatar-engine")


def set_up(level: str) -> None:
    """Called once by a command, never at import."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(level.upper())
    LOG.propagate = False
