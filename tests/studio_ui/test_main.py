"""The command line: bad input is one line and status 2; help names every flag."""

from __future__ import annotations

import pytest

from studio.__main__ import check_endpoint, main, parser
from studio.settings import TABLE


@pytest.mark.parametrize("endpoint", [
    "", "tcp://127.0.0.1:5555", "tcp://host.example:1", "tcp://[::1]:7000", "ipc:///tmp/a",
])  # fmt: skip
def test_addresses(endpoint):
    check_endpoint(endpoint)


@pytest.mark.parametrize("endpoint", [
    "nonsense", "tcp://host", "http://host:80", "tcp://:80", "ipc://",
    "tcp://host:0", "tcp://host:65536",
])  # fmt: skip
def test_bad_address_is_one_line_and_status_2(endpoint, tmp_path, capsys):
    status = main(["--settings", str(tmp_path / "s.json"), "--engine", endpoint])
    said = capsys.readouterr().err.strip()
    assert status == 2 and repr(endpoint) in said and "tcp://host:port" in said
    assert "\n" not in said


def test_help_names_every_flag():
    text = parser().format_help()
    assert all(row.flag in text for row in TABLE if row.flag)
