"""Tests that wait on real sound servers, real sockets and real processes get one more try.

They assert on wall-clock behaviour of several processes; another program that takes both cores for
a second can fail them without a fault of ours. A fault fails them twice.
"""

from __future__ import annotations

import pytest

REAL_TIME = (
    "studio/test_real_audio.py",
    "studio/test_session_flow.py",
    "studio/test_link.py",
    "studio/test_voice_parts.py",
    "studio/test_recorder.py",
    "studio_ui/test_real_engine.py",
    "engine/test_recovery.py",
    "engine/test_path.py",
    "engine/test_portrait_path.py",
    "engine/test_fuzz.py",
    "engine/test_security.py",
    "engine/test_ranks_live.py",
    "engine/test_ranks_cycles.py",
    "qa/test_cluster.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.as_posix().endswith(REAL_TIME):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=1))
