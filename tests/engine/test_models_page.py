"""Listing, loading, measuring and unloading models over real sockets, with a tiny checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from engine.protocol import messages as pm
from tests.engine.wire_client import EngineUnderTest, WireClient
from tests.models import checkpoint_layouts as layouts
from tests.models.test_checkpoint_render import complete_model

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineUnderTest]:
    root = tmp_path_factory.mktemp("checkpoints")
    complete_model(root)
    state = layouts.random_state(layouts.small("wan-1.3b"))
    layouts.causvid(root / "torn", {k: v for k, v in state.items() if "norm3" not in k})
    process = EngineUnderTest(tmp_path_factory.mktemp("e"), "--checkpoints", str(root))
    yield process
    assert process.close() == 0


@pytest.fixture
def client(engine: EngineUnderTest) -> Iterator[WireClient]:
    client = WireClient(engine.ready)
    yield client
    client.close()


def answer(client: WireClient, request: int, until: float = 180.0) -> pm.Reply:
    """The reply to a slow request, with pings meanwhile: a silent client is taken for lost."""
    deadline = time.monotonic() + until
    while time.monotonic() < deadline:
        if not client.control.poll(1000):
            client.send(pm.Ping())
            continue
        envelope = pm.decode_reply(client.control.recv())
        if envelope.id == request:
            return envelope.body
    raise AssertionError(f"no answer to {request} in {until} s")


def ask(client: WireClient, body: pm.Request) -> pm.Reply:
    return answer(client, client.send(body))


def listed(client: WireClient) -> dict[str, pm.ModelInfo]:
    reply = ask(client, pm.ListModels())
    assert isinstance(reply, pm.ModelList), reply
    assert reply.free_bytes > 0 and reply.device
    return {model.name: model for model in reply.models}


def progress_of(client: WireClient, request: int) -> list[tuple[float, str]]:
    while client.telemetry.poll(100):
        client.telemetry_seen.append(pm.decode_telemetry(client.telemetry.recv()))
    seen = client.telemetry_seen
    return [
        (m.fraction, m.what)
        for m in seen if isinstance(m, pm.ProgressReport) and m.request == request
    ]  # fmt: skip


def test_a_model_is_listed_loaded_used_and_unloaded(client: WireClient) -> None:
    models = listed(client)
    assert {"portrait", "avatar-57b", "small", "wan", "torn"} <= set(models)
    small, torn = models["small"], models["torn"]
    assert small.layout.startswith("Self-Forcing generator_ema") and not small.loaded
    assert small.non_commercial and "not for commercial use" in small.licence
    assert small.problem == "" and small.lacks == [] and small.needs_bytes > 0
    assert "tensors are missing" in torn.problem
    assert models["avatar-57b"].synthetic and models["portrait"].path == ""

    request = client.send(pm.LoadModel(model="small"))
    loaded = answer(client, request)
    assert isinstance(loaded, pm.ModelLoaded), loaded
    assert loaded.bytes > 1e6 and loaded.load_ms > 0
    steps = progress_of(client, request)
    assert steps[0] == (0.0, f"licence: {small.licence}")
    assert [fraction for fraction, _ in steps] == sorted(fraction for fraction, _ in steps)
    assert listed(client)["small"].loaded

    opened = ask(client, pm.OpenSession(model="portrait"))  # does not take the loaded one's worker
    assert isinstance(opened, pm.SessionOpened), opened
    assert listed(client)["small"].loaded
    ask(client, pm.CloseSession(session=opened.session))

    assert ask(client, pm.UnloadModel(model="small")) == pm.Done()
    assert not listed(client)["small"].loaded
    again = ask(client, pm.UnloadModel(model="small"))
    assert isinstance(again, pm.Failure) and "is not loaded" in again.message


def test_a_session_takes_the_loaded_model_over(client: WireClient) -> None:
    assert isinstance(ask(client, pm.LoadModel(model="small")), pm.ModelLoaded)
    opened = ask(client, pm.OpenSession(model="small"))
    assert isinstance(opened, pm.SessionOpened), opened
    assert opened.frames_per_chunk == 18 and not opened.synthetic
    refused = ask(client, pm.UnloadModel(model="small"))
    assert isinstance(refused, pm.Failure) and "is in use" in refused.message
    ask(client, pm.CloseSession(session=opened.session))


def test_a_slow_request_is_cancelled_and_the_worker_goes_on(client: WireClient) -> None:
    """A load of so small a model may be over before the cancel: the measurement is long enough."""
    request = client.send(pm.BenchModel(model="small", seconds=300.0))
    while not progress_of(client, request):
        client.send(pm.Ping())
    assert ask(client, pm.Cancel(request=request)) == pm.Done()
    failed = answer(client, request)
    assert isinstance(failed, pm.Failure) and failed.code == "cancelled"
    assert not listed(client)["torn"].loaded


def test_a_model_is_measured(client: WireClient) -> None:
    request = client.send(pm.BenchModel(model="small", seconds=1.0))
    measured = answer(client, request)
    assert isinstance(measured, pm.ModelBenched), measured
    assert measured.fps > 0 and measured.frames >= 18 and not measured.synthetic
    assert {"denoise", "decode"} <= set(measured.stage_ms)
    assert progress_of(client, request)


@pytest.mark.parametrize(
    ("request_body", "code", "words"),
    [
        (pm.LoadModel(model="nothing"), "unknown_model", "no model is called 'nothing'"),
        (pm.LoadModel(model="torn"), "bad_checkpoint", "tensors are missing"),
        (pm.BenchModel(model="portrait"), "bad_input", "a picture of a face"),
        (pm.BenchModel(model="small", seconds=1e6), "bad_input", "no length"),
        (pm.OpenSession(model="torn"), "bad_checkpoint", "tensors are missing"),
    ],
)
def test_refusals_are_one_line(
    request_body: pm.Request, code: str, words: str, client: WireClient
) -> None:
    failed = ask(client, request_body)
    assert isinstance(failed, pm.Failure), failed
    assert failed.code == code and words in failed.message and "\n" not in failed.message
