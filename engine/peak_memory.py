"""How much memory this process had at most. Knows nothing of GPUs or of other processes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_resident() -> int:
    """Bytes. Linux hands the peak of whoever started a process on to its ru_maxrss (1.5 GB of a
    test suite's), so there the kernel's own count of this process is read.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
