from __future__ import annotations

import pytest

from tests.engine.wire_client import EngineUnderTest, WireClient


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """One engine process for the tests of a file."""
    # A short folder: pytest's own are too long for ipc sockets of nested names.
    process = EngineUnderTest(tmp_path_factory.mktemp("e"))
    yield process
    assert process.close() == 0


@pytest.fixture
def client(engine):
    client = WireClient(engine.ready)
    yield client
    client.close()
