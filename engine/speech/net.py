"""A causal net of dilated products, run in numpy one or many steps at a time.

1.11 M parameters at width 224; 45 steps (0.94 s) are heard. Streaming equals batch: the only state
is the last 2 x dilation rows of each block. Knows nothing of features or of what outputs mean
beyond their order: 4 heads x 40 phones, then the speech gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from engine.errors import EngineError
from engine.speech.encoded import HEAD_OFFSETS_MS, PHONES

DILATIONS = (1, 2, 4, 8, 1, 2, 4)
TAPS = 3
EPSILON = 1e-5
MOST_VECTORS = 3
OUTPUTS = len(HEAD_OFFSETS_MS) * len(PHONES) + 1  # and the gate's logit


@dataclass(frozen=True, slots=True)
class NetWeights:
    """float32, stored transposed for `rows @ matrix`."""

    inlet: tuple[np.ndarray, np.ndarray]  # [INPUTS, width], [width]
    blocks: tuple[tuple[np.ndarray, np.ndarray], ...]  # each [TAPS * width, width], [width]
    outlet: tuple[np.ndarray, np.ndarray]  # [width, OUTPUTS], [OUTPUTS]
    mean: np.ndarray  # [MELS] mean log mel power of the training set
    notes: dict[str, str]  # how it was trained

    @property
    def width(self) -> int:
        return len(self.inlet[1])


def load_weights(path: Path) -> NetWeights:
    """Reads a safetensors file that `train_net.save_weights` wrote.

    Raises:
        EngineError: missing, unreadable or of another shape.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name).astype(np.float32) for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
        return _from_arrays(arrays, notes)
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise EngineError(
            "missing_asset",
            f"The speech encoder's weights {path.name} cannot be used: {error}.",
            "Reinstall the package, or train them with `avatar-engine train audio`.",
        ) from error


def _from_arrays(arrays: dict[str, np.ndarray], notes: dict[str, str]) -> NetWeights:
    def linear(name: str) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(arrays[f"{name}.weight"].T), arrays[f"{name}.bias"]

    blocks = tuple(linear(f"blocks.{i}.linear") for i in range(len(DILATIONS)))
    outlet = linear("outlet")
    if outlet[0].shape[1] != OUTPUTS:
        raise ValueError(f"{outlet[0].shape[1]} outputs, {OUTPUTS} expected")
    return NetWeights(linear("inlet"), blocks, outlet, arrays["mean"], notes)


class NetStream:
    """Runs the net over steps as they come."""

    def __init__(self, weights: NetWeights) -> None:
        self._weights = weights
        self.reset()

    def reset(self) -> None:
        """Zeros before the first step, as in training."""
        width = self._weights.width
        self._past = [np.zeros((d * (TAPS - 1), width), np.float32) for d in DILATIONS]

    def push(self, inputs: np.ndarray) -> np.ndarray:
        """[steps, INPUTS] -> [steps, OUTPUTS] logits."""
        steps = len(inputs)
        if steps == 0:
            return np.zeros((0, OUTPUTS), np.float32)
        weights = self._weights
        x = product(inputs, weights.inlet[0]) + weights.inlet[1]
        for i, (dilation, (matrix, bias)) in enumerate(zip(DILATIONS, weights.blocks, strict=True)):
            rows = np.concatenate([self._past[i], rms_normalised(x)])
            taps = [rows[k * dilation : k * dilation + steps] for k in range(TAPS)]
            change = product(np.concatenate(taps, 1), matrix)
            change += bias
            x += np.maximum(change, 0, out=change)
            self._past[i] = rows[steps:]
        return product(rms_normalised(x), weights.outlet[0]) + weights.outlet[1]


def product(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """rows @ matrix; a few rows one by one, since BLAS would first pack the whole matrix.

    Seven products of width 224: two rows 0.28 ms as vectors, 0.55 ms as a matrix (busy machine).
    """
    if len(rows) > MOST_VECTORS:
        return rows @ matrix
    out = np.empty((len(rows), matrix.shape[1]), np.float32)
    for row, place in zip(rows, out, strict=True):
        np.dot(row, matrix, out=place)
    return out


def rms_normalised(x: np.ndarray) -> np.ndarray:
    """Unit rms over the last axis."""
    square = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
    return x / np.sqrt(square + np.float32(EPSILON))[:, None]
