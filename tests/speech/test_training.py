"""Training and live code must do the same arithmetic, and held-out voices must stay out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.speech.corpus.clip import Clip, load_clips, save_clips
from engine.speech.corpus.held_out import SPEAKERS, may_train
from engine.speech.corpus.phone_maps import festival_to_arpabet, ipa_to_arpabet
from engine.speech.corpus.shard import CODE_FLOOR, CODE_STEP, codes_of, labels_of
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONE_INDEX
from engine.speech.features import INPUTS, InputStream, mel_power
from engine.speech.net import NetStream, load_weights

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def shard() -> dict[str, np.ndarray]:
    """Twenty seconds of made-up sound with phones of 0.1 s."""
    rng = np.random.default_rng(0)
    pcm = rng.standard_normal(24_000 * 20).astype(np.float32) * 0.1
    mel = codes_of(mel_power(pcm))
    names = list(PHONE_INDEX)
    phones = [(names[1 + i % 39], i * 0.1, (i + 1) * 0.1) for i in range(190)]
    return {
        "mel": mel,
        "labels": labels_of(phones, len(mel)),
        "noise": mel.copy(),
        "source_hops": np.array([len(mel)]),
        "source_names": np.array(["made up"]),
        "noise_hops": np.array([len(mel)]),
        "noise_names": np.array(["stationary"]),
    }


def test_torch_and_numpy_nets_agree(tmp_path: Path) -> None:
    from engine.speech.train_net import TrainNet, save_weights

    torch.manual_seed(0)
    net = TrainNet(48).eval()
    save_weights(tmp_path / "w.safetensors", net.state_dict(), torch.zeros(40), {"a": "b"})
    weights = load_weights(tmp_path / "w.safetensors")
    state = {k: v.half().float() for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    x = torch.randn(1, 70, INPUTS)
    with torch.no_grad():
        batch = net(x)[0].numpy()
    stream = NetStream(weights)
    pieces = [stream.push(x[0, i : i + 3].numpy()) for i in range(0, 70, 3)]
    assert np.allclose(np.concatenate(pieces), batch, atol=2e-4)
    assert weights.notes == {"a": "b"}


def test_batch_inputs_are_the_live_ones(shard: dict[str, np.ndarray]) -> None:
    """The running mean as a matrix equals the running mean as a loop."""
    from engine.speech.augment import BatchMaker

    maker = BatchMaker(shard, torch.device("cpu"), steps=40, seed=0)
    maker._some = lambda size, share: torch.zeros(size, dtype=torch.bool)  # nothing random
    codes = shard["mel"][100:180].astype(np.float32)
    power = np.exp(codes * CODE_STEP + CODE_FLOOR)
    power[0] *= 10 / power[0].sum()  # loud enough that the live lift stays out
    batch = maker._inputs(torch.tensor(power)[None], 0.0)[0].numpy()
    live = InputStream(maker.mean.numpy())
    # live pairs hops (2s-1, 2s): feed one hop of its own first and compare whole pairs
    rows = np.concatenate([live.push(power), live.push(power[:1])])
    hops = rows.reshape(-1, INPUTS // 2)[1:81]
    assert np.allclose(hops.reshape(40, INPUTS), batch, atol=1e-4)


def test_targets_are_at_the_heads_instants(shard: dict[str, np.ndarray]) -> None:
    """Undisturbed, the label of step s and head h is the phone at (step's end - 80 ms + h)."""
    from engine.speech.augment import BatchMaker

    maker = BatchMaker(shard, torch.device("cpu"), steps=40, seed=0)
    position = torch.arange(80)[None].float() + 96
    got = maker._targets(position, torch.ones(1))[0].numpy()
    for step in (3, 17, 38):
        end_48k = 500 * (96 + 2 * step + 2) + 326
        for i, offset in enumerate(HEAD_OFFSETS_MS):
            seconds = end_48k / 48_000 - 0.08 + offset / 1000
            near = {1 + int((seconds + d) / 0.1) % 39 for d in (-0.002, 0, 0.002)}
            assert got[step, i] in near


def test_batches_are_whole(shard: dict[str, np.ndarray]) -> None:
    from engine.speech.augment import BatchMaker

    maker = BatchMaker(shard, torch.device("cpu"), steps=40, seed=0)
    for strength in (0.0, 1.0):
        batch = maker.draw(6, strength)
        assert batch.inputs.shape == (6, 40, INPUTS) and torch.isfinite(batch.inputs).all()
        assert batch.phones.shape == (6, 40, 4) and batch.speech.shape == (6, 40)
        assert batch.phones.max() < 40


def test_held_out_voices_cannot_be_packed() -> None:
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    from engine.speech.corpus.pack import Shard

    pcm = np.zeros(24_000, np.float32)
    for speaker, language in (
        ("slt", "en-us"),
        ("awb", "en-us"),
        ("rms", "en-us"),
        ("anyone", "ru"),
        ("anyone", "ru-LV"),
        ("libri-1688", "en-us"),
    ):
        with pytest.raises(ValueError, match="held out"):
            Shard().add_clip(Clip("x", speaker, language, pcm, [("AA", 0, 1)]))
    Shard().add_clip(Clip("x", "kal16", "en-us", pcm, [("AA", 0, 1)]))
    assert len(SPEAKERS) == 14 and may_train("kal16", "en-us") and not may_train("kal16", "ru")


def test_clips_survive_a_file(tmp_path: Path) -> None:
    pcm = (np.random.default_rng(0).uniform(-0.7, 0.7, 1_000)).astype(np.float32)
    clips = [
        Clip("s", f"v{i}", "en-us", pcm * i, [("AA", 0.0, 0.02), ("SIL", 0.02, 0.04)], "ah")
        for i in (0, 1)
    ]
    save_clips(tmp_path / "c.npz", clips)
    back = list(load_clips(tmp_path / "c.npz"))
    assert [c.speaker for c in back] == ["v0", "v1"] and back[1].phones == clips[1].phones
    assert np.allclose(back[1].pcm, pcm, atol=1e-4)


def test_other_alphabets() -> None:
    assert ipa_to_arpabet("tʃˈiːzə") == ["CH", "IY", "Z", "AH"]
    assert ipa_to_arpabet("b_l_ˈɑ̃") == ["B", "L", "AA"]
    assert ipa_to_arpabet("ç") == ["SH"]
    assert festival_to_arpabet("a1", "it") == "AA" and festival_to_arpabet("#", "cs") == "SIL"
    assert festival_to_arpabet("qq", "it") is None


def test_a_few_steps_train_and_save(tmp_path: Path, shard: dict[str, np.ndarray]) -> None:
    """The command end to end on twenty made-up seconds: the loss is finite, the weights load."""
    import json

    from engine.speech import train
    from engine.speech.corpus.shard import write_arrays

    write_arrays(tmp_path / "shard.xz", shard)
    arguments = ["--shard", str(tmp_path / "shard.xz"), "--out", str(tmp_path), "--device", "cpu"]
    train.main([*arguments, "--batch", "2", "--width", "16", "--most-steps", "3", "--seed", "7"])
    log = json.loads((tmp_path / "speech-seed7.json").read_text())
    assert np.isfinite(log["history"][-1]["loss"]) and log["history"][-1]["step"] == 3
    assert load_weights(tmp_path / "speech-seed7.safetensors").notes["seed"] == "7"


def test_a_missing_shard_is_one_clear_line(tmp_path: Path) -> None:
    from engine.errors import EngineError
    from engine.speech import train

    with pytest.raises(EngineError, match="no training shard"):
        train.main(["--shard", str(tmp_path / "no.xz"), "--out", str(tmp_path)])
