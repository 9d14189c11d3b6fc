"""umT5: both layouts of files, equal to the published definition; kept on disk; gone afterwards.

Tiny random weights and a tokenizer made here. The truth of the .pth's names is `Definition` below,
written from the original module's published text, not from transformers.
"""

from __future__ import annotations

import json
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everywhere
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import EngineError
from engine.models import text_encoder
from engine.models.text_encoder import TOKENS, clean, encode_text
from engine.models.text_files import find_text_encoder, load_text_encoder, public_name

transformers = pytest.importorskip("transformers")
CPU = torch.device("cpu")
WORDS, WIDTH, HEADS, INNER, FF, LAYERS = 40, 32, 4, 24, 48, 2
PROMPT = "a woman   speaks &amp; smiles\n"


def original_state() -> dict[str, Tensor]:
    """As models_t5_umt5-xxl-enc-bf16.pth: one embedding, a position table in every block."""
    source = torch.Generator().manual_seed(8)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=source) * shape[-1] ** -0.5

    state = {"token_embedding.weight": drawn(WORDS, WIDTH), "norm.weight": 1 + 0.1 * drawn(WIDTH)}
    for i in range(LAYERS):
        block = {f"attn.{n}.weight": drawn(INNER, WIDTH) for n in "qkv"}
        block |= {"attn.o.weight": drawn(WIDTH, INNER), "ffn.gate.0.weight": drawn(FF, WIDTH)}
        block |= {"ffn.fc1.weight": drawn(FF, WIDTH), "ffn.fc2.weight": drawn(WIDTH, FF)}
        block |= {f"norm{n}.weight": 1 + 0.1 * drawn(WIDTH) for n in (1, 2)}
        block["pos_embedding.embedding.weight"] = 3 * drawn(32, HEADS)
        state |= {f"blocks.{i}.{name}": value for name, value in block.items()}
    return state


class Definition:
    """The encoder over the .pth's own names: bidirectional T5 without scaled scores."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self.state = state

    def __call__(self, numbers: Tensor) -> Tensor:
        """[tokens] -> [tokens, WIDTH]."""
        x = self.state["token_embedding.weight"][numbers]
        for i in range(LAYERS):
            x = x + self.attended(i, self.normed(x, f"blocks.{i}.norm1"))
            y = self.normed(x, f"blocks.{i}.norm2")
            gate = F.gelu(self.times(y, f"blocks.{i}.ffn.gate.0"), approximate="tanh")
            y = self.times(y, f"blocks.{i}.ffn.fc1") * gate
            x = x + self.times(y, f"blocks.{i}.ffn.fc2")
        return self.normed(x, "norm")

    def times(self, x: Tensor, name: str) -> Tensor:
        return x @ self.state[f"{name}.weight"].T

    def normed(self, x: Tensor, name: str) -> Tensor:
        root = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x * root * self.state[f"{name}.weight"]

    def attended(self, i: int, x: Tensor) -> Tensor:
        q, k, v = (
            self.times(x, f"blocks.{i}.attn.{n}").unflatten(-1, (HEADS, -1)).transpose(0, 1)
            for n in "qkv"
        )
        table = self.state[f"blocks.{i}.pos_embedding.embedding.weight"]
        far = torch.arange(len(x))[None] - torch.arange(len(x))[:, None]
        bias = torch.stack([table[bucket(int(d))] for d in far.flatten()])
        bias = bias.view(len(x), len(x), HEADS).permute(2, 0, 1)
        mixed = (q @ k.transpose(1, 2) + bias).softmax(-1) @ v
        return self.times(mixed.transpose(0, 1).flatten(1), f"blocks.{i}.attn.o")


def bucket(distance: int) -> int:
    """Of 32: halves by sign; 8 exact distances each, then logarithmic to 128."""
    side, far = 16 * (distance > 0), abs(distance)
    if far < 8:
        return side + far
    return side + min(15, 8 + int(math.log(far / 8) / math.log(128 / 8) * 8))


def tokenizer(folder: Path) -> None:
    """Thirty-odd words and letters, an end mark, as a T5 tokenizer file."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    spoken = ["a", "woman", "speaks", "smiles", "&", "man"]
    words = ["<pad>", "</s>", "<unk>", *("▁" + word for word in spoken)]
    words += list("▁abcdefghijklmnopqrstuvwxyz")
    made = Tokenizer(models.Unigram([(w, -float(i)) for i, w in enumerate(words)], unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    folder.mkdir(parents=True)
    made.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told | {"unk_token": "<unk>"}))


def numbers_of(prompt: str, folder: Path) -> list[int]:
    return transformers.AutoTokenizer.from_pretrained(str(folder))(prompt)["input_ids"]


def original_folder(folder: Path, change: dict[str, Tensor | None] | None = None) -> Path:
    tokenizer(folder / "google" / "umt5-xxl")
    state = original_state() | (change or {})
    whole = {k: v for k, v in state.items() if v is not None}
    torch.save(whole, folder / "models_t5_umt5-xxl-enc-bf16.pth")
    return folder


def public_folder(folder: Path) -> Path:
    """As a diffusers repository: text_encoder/ and tokenizer/, only one copy of the embedding."""
    tokenizer(folder / "tokenizer")
    (folder / "text_encoder").mkdir()
    state = {public_name(k): v for k, v in original_state().items()}
    save_file(state, folder / "text_encoder" / "model.safetensors")
    return folder


@pytest.mark.parametrize("layout", [original_folder, public_folder])
def test_parity_with_the_published_definition(layout: Any, tmp_path: Path) -> None:
    files = find_text_encoder(layout(tmp_path))
    numbers = numbers_of(clean(PROMPT), files.tokenizer)
    assert 5 < len(numbers) < 30 and numbers[-1] == 1 and 2 not in numbers
    got = encode_text(PROMPT, files, None, CPU, torch.float32)
    assert got.shape == (TOKENS, WIDTH)
    want = Definition(original_state())(torch.tensor(numbers))
    torch.testing.assert_close(got[: len(numbers)], want, rtol=1e-5, atol=1e-5)
    assert (got[len(numbers) :] == 0).all() and want.std() > 0.3


def test_parity_far_apart_tokens_too(tmp_path: Path) -> None:
    """200 tokens: beyond the 128 where distances stop being told apart."""
    model = load_text_encoder(find_text_encoder(original_folder(tmp_path)), CPU, torch.float32)
    numbers = torch.randint(3, WORDS, (200,), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        got = model(input_ids=numbers[None]).last_hidden_state[0]
    torch.testing.assert_close(got, Definition(original_state())(numbers), rtol=1e-4, atol=1e-4)


def test_parity_of_own_tokens_with_the_padded_and_masked_way(tmp_path: Path) -> None:
    files = find_text_encoder(original_folder(tmp_path))
    model = load_text_encoder(files, CPU, torch.float32)
    padder = transformers.AutoTokenizer.from_pretrained(str(files.tokenizer))
    told = padder(clean(PROMPT), padding="max_length", max_length=TOKENS, return_tensors="pt")
    with torch.no_grad():
        want = model(**{k: told[k] for k in ("input_ids", "attention_mask")}).last_hidden_state[0]
    count = int(told["attention_mask"].sum())
    got = encode_text(PROMPT, files, None, CPU, torch.float32)
    torch.testing.assert_close(got[:count], want[:count], rtol=1e-4, atol=1e-5)


def test_a_long_prompt_is_cut_and_keeps_its_end_mark(tmp_path: Path) -> None:
    files = find_text_encoder(original_folder(tmp_path))
    numbers = text_encoder._tokens("woman " * 2000, files.tokenizer)
    assert numbers.shape == (1, TOKENS) and numbers[0, -1] == 1


def test_it_is_computed_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, cache = find_text_encoder(original_folder(tmp_path / "m")), tmp_path / "cache"
    first = encode_text(PROMPT, files, cache, CPU, torch.float32)
    monkeypatch.setattr(text_encoder, "load_text_encoder", None)
    assert torch.equal(encode_text(PROMPT, files, cache, CPU, torch.float32), first)
    same = encode_text("a woman speaks & smiles", files, cache, CPU, torch.float32)
    assert torch.equal(same, first)
    with pytest.raises(TypeError):
        encode_text("a man speaks", files, cache, CPU, torch.float32)
    with pytest.raises(TypeError):  # another precision is another result
        encode_text(PROMPT, files, cache, CPU, torch.bfloat16)
    kept = list((cache / "text").iterdir())
    assert len(kept) == 1
    kept[0].write_bytes(kept[0].read_bytes()[:40])
    with pytest.raises(TypeError):  # damaged: computed again
        encode_text(PROMPT, files, cache, CPU, torch.float32)


def test_other_weights_are_another_result(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    one = encode_text(
        PROMPT, find_text_encoder(original_folder(tmp_path / "a")), cache, CPU, torch.float32
    )
    change: dict[str, Tensor | None] = {"norm.weight": torch.full((WIDTH,), 2.0)}
    files = find_text_encoder(original_folder(tmp_path / "b", change))
    assert not torch.equal(encode_text(PROMPT, files, cache, CPU, torch.float32), one)


def test_nothing_of_the_encoder_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[weakref.ref[Any]] = []

    def load(*given: Any) -> Any:
        model = load_text_encoder(*given)
        built.extend((weakref.ref(model), weakref.ref(model.shared.weight)))
        return model

    monkeypatch.setattr(text_encoder, "load_text_encoder", load)
    encode_text(PROMPT, find_text_encoder(original_folder(tmp_path)), None, CPU, torch.float32)
    assert len(built) == 2 and [ref() for ref in built] == [None, None]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"blocks.1.ffn.fc2.weight": None}, "missing (encoder.block.1.layer.1.DenseReluDense.wo"),
        ({"blocks.1.norm1.weight": torch.zeros(7)}, "[7] instead of [32]"),
        ({"blocks.1.more.weight": torch.zeros(7)}, "unexpected (blocks.1.more.weight)"),
    ],
)
def test_what_is_not_whole_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], told: str
) -> None:
    files = find_text_encoder(original_folder(tmp_path, change))
    with pytest.raises(EngineError) as refusal:
        encode_text(PROMPT, files, None, CPU, torch.float32)
    assert told in str(refusal.value) and refusal.value.code == "bad_checkpoint"


def test_without_encoder_or_tokenizer_it_says_what_to_copy(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no text encoder"):
        find_text_encoder(tmp_path)
    torch.save(original_state(), tmp_path / "t5.pth")
    with pytest.raises(EngineError, match="google/umt5-xxl"):
        find_text_encoder(tmp_path)
