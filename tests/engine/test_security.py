"""Who gets in: versions, hello first, the token, binds, CURVE keys."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest
import zmq
import zmq.auth

import engine.protocol as wire
from engine.errors import EngineError
from engine.protocol import messages as pm
from engine.security import check_bind, load_keys, make_runtime_dir
from tests.engine.wire_client import ROOT, EngineUnderTest, WireClient


def test_another_major_is_refused_naming_both(engine):
    client = WireClient(engine.ready, hello=False)
    reply = client.ask(pm.Hello(major=2, minor=7, token=engine.ready["token"]))
    assert reply.code == "protocol_version"
    assert "2.7" in reply.message and f"{wire.MAJOR}.{wire.MINOR}" in reply.message
    assert "engine" in reply.hint
    client.close()


def test_a_later_minor_and_features_are_negotiated(engine):
    client = WireClient(engine.ready, hello=False)
    hello = pm.Hello(
        major=1, minor=9, token=engine.ready["token"], features=["doctor", "time_travel"]
    )
    welcome = client.ask(hello)
    assert (welcome.major, welcome.minor, welcome.features) == (wire.MAJOR, wire.MINOR, ["doctor"])
    assert welcome.pid == engine.process.pid
    client.close()


def test_hello_comes_first_and_shows_the_token(engine):
    client = WireClient(engine.ready, hello=False)
    assert client.ask(pm.Ping()).code == "not_ready"
    assert client.ask(pm.OpenSession()).code == "not_ready"
    assert client.ask(pm.Hello(major=1, minor=0, token="guess")).code == "bad_message"
    assert client.ask(pm.Ping()).code == "not_ready"
    client.close()


def test_sessions_of_others_cannot_be_touched(engine, client):
    opened = client.open()
    other = WireClient(engine.ready)
    assert other.ask(pm.Start(session=opened.session)).code == "bad_input"
    assert other.ask(pm.CloseSession(session=opened.session)).code == "bad_input"
    other.close()
    assert client.ask(pm.CloseSession(session=opened.session)) == pm.Done()


def test_a_repeated_request_is_answered_from_the_cache_not_run_again(engine, client):
    opened = client.open()
    request = client.send(pm.Start(session=opened.session))
    first = client.reply(request)
    client.send(pm.Start(session=opened.session), request)
    assert client.reply(request) == first  # epoch 1 again, not 2
    assert client.ask(pm.Start(session=opened.session)).epoch == 2
    client.ask(pm.CloseSession(session=opened.session))


def test_unknown_models_and_options_name_the_right_ones(client):
    reply = client.ask(pm.OpenSession(model="metre"))
    assert reply.code == "unknown_model" and "meter" in reply.hint
    reply = client.ask(pm.OpenSession(model="meter", options={"speed": 1.0}))
    assert reply.code == "bad_input" and "frames_per_chunk" in reply.hint


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "*", "myhost", "1.2.3.4"])
def test_reachable_binds_need_curve(host):
    with pytest.raises(EngineError) as caught:
        check_bind(host, has_curve=False)
    assert caught.value.code == "insecure_bind"
    check_bind(host, has_curve=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1"])
def test_loopback_needs_none(host):
    check_bind(host, has_curve=False)


def test_refusal_is_one_line_with_exit_status_2():
    done = subprocess.run(
        [sys.executable, "-m", "engine", "serve", "--bind", "0.0.0.0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and "--curve-key-dir" in done.stderr


def test_runtime_folder_is_private_and_short_enough(tmp_path):
    folder = make_runtime_dir(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(EngineError, match="107"):
        make_runtime_dir(tmp_path / ("long" * 30))


def test_loopback_tcp_works(tmp_path):
    engine = EngineUnderTest(tmp_path, "--bind", "127.0.0.1")
    assert all(e.startswith("tcp://127.0.0.1:") for e in engine.ready["endpoints"].values())
    discovery = next(tmp_path.glob("avatar-*/engine.json"))
    assert stat.S_IMODE(discovery.stat().st_mode) == 0o600
    client = WireClient(engine.ready)
    client.open()
    client.close()
    engine.close()


def test_curve_admits_known_keys_only(tmp_path):
    keys_dir = tmp_path / "keys"
    engine = EngineUnderTest(tmp_path, "--bind", "0.0.0.0", "--curve-key-dir", str(keys_dir))
    ready = dict(engine.ready)
    ready["endpoints"] = {
        lane: place.replace("0.0.0.0", "127.0.0.1") for lane, place in ready["endpoints"].items()
    }
    public, secret = zmq.auth.load_certificate(keys_dir / "studio.key_secret")
    server = ready["public_key"].encode()
    stranger = WireClient(ready, keys=(server, *zmq.curve_keypair()), hello=False)
    stranger.control.setsockopt(zmq.RCVTIMEO, 1500)
    with pytest.raises(zmq.Again):
        stranger.ask(pm.Hello(major=1, minor=0))
    stranger.close()
    naked = WireClient(ready, hello=False)
    naked.control.setsockopt(zmq.RCVTIMEO, 500)
    with pytest.raises(zmq.Again):
        naked.ask(pm.Hello(major=1, minor=0))
    naked.close()
    known = WireClient(ready, keys=(server, public, secret), hello=False)
    welcome = known.ask(pm.Hello(major=1, minor=0))
    assert isinstance(welcome, pm.Welcome)
    known.close()
    engine.close()


def test_key_folder_is_made_once_and_checked(tmp_path):
    first, again = load_keys(tmp_path / "k"), load_keys(tmp_path / "k")
    assert first == again and len(first.clients) == 1
    secret = tmp_path / "k" / "engine.key_secret"
    secret.chmod(0o644)
    with pytest.raises(EngineError, match="chmod 600"):
        load_keys(tmp_path / "k")
    secret.chmod(0o600)
    secret.write_text("nonsense")
    with pytest.raises(EngineError) as caught:
        load_keys(tmp_path / "k")
    assert caught.value.code == "bad_config"
