"""Listing, loading, measuring and unloading models over real sockets, with a tiny checkpoint."""

from __future__ import annotations

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
    client.control.setsockopt(27, 120_000)  # RCVTIMEO: the first list imports torch
    yield client
    client.close()


def listed(client: WireClient) -> dict[str, pm.ModelInfo]:
    reply = client.ask(pm.ListModels())
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
    loaded = client.reply(request)
    assert isinstance(loaded, pm.ModelLoaded), loaded
    assert loaded.bytes > 1e6 and loaded.load_ms > 0
    steps = progress_of(client, request)
    assert steps[0] == (0.0, f"licence: {small.licence}")
    assert [fraction for fraction, _ in steps] == sorted(fraction for fraction, _ in steps)
    assert listed(client)["small"].loaded

    opened = client.ask(pm.OpenSession(model="portrait"))  # does not take the loaded one's worker
    assert isinstance(opened, pm.SessionOpened), opened
    assert listed(client)["small"].loaded
    client.ask(pm.CloseSession(session=opened.session))

    assert client.ask(pm.UnloadModel(model="small")) == pm.Done()
    assert not listed(client)["small"].loaded
    again = client.ask(pm.UnloadModel(model="small"))
    assert isinstance(again, pm.Failure) and "is not loaded" in again.message


def test_a_session_takes_the_loaded_model_over(client: WireClient) -> None:
    assert isinstance(client.ask(pm.LoadModel(model="small")), pm.ModelLoaded)
    opened = client.ask(pm.OpenSession(model="small"))
    assert isinstance(opened, pm.SessionOpened), opened
    assert opened.frames_per_chunk == 18 and not opened.synthetic
    refused = client.ask(pm.UnloadModel(model="small"))
    assert isinstance(refused, pm.Failure) and "is in use" in refused.message
    client.ask(pm.CloseSession(session=opened.session))


def test_loading_is_cancelled(client: WireClient) -> None:
    request = client.send(pm.LoadModel(model="small"))
    client.ask(pm.Cancel(request=request))
    failed = client.reply(request)
    assert isinstance(failed, pm.Failure) and failed.code == "cancelled"
    assert not listed(client)["small"].loaded


def test_a_model_is_measured(client: WireClient) -> None:
    request = client.send(pm.BenchModel(model="small", seconds=1.0))
    measured = client.reply(request)
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
    failed = client.ask(request_body)
    assert isinstance(failed, pm.Failure), failed
    assert failed.code == code and words in failed.message and "\n" not in failed.message
