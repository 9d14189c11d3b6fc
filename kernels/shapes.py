"""Block shapes by measurement, and the real and odd shapes that tests and benchmarks use.

Knows nothing of devices: a table a person can read and change.
"""

from __future__ import annotations

TOKENS = 748  # of one chunk at 704x1088: 22 x 34

# (queries, keys, warps, stages) of ring attention; head_dim 128
ATTENTION: dict[str, tuple[int, int, int, int]] = {
    "bf16": (128, 128, 8, 2),
    "fp8": (128, 128, 8, 3),
}

# (columns, channels a turn, warps, stages) of the causal convolution, 128 rows a tile
CONV: dict[str, tuple[int, int, int, int]] = {
    "bf16": (256, 64, 8, 4),
    "fp8": (256, 128, 8, 4),
    "bf16 narrow": (128, 64, 8, 4),
    "bf16 thin": (16, 64, 4, 4),
}

# name -> (K, N) of the linear layers of one of three ranks of avatar-57b
LINEARS: dict[str, tuple[int, int]] = {
    "qkv": (7680, 7680),
    "o": (2560, 7680),
    "cross_q": (7680, 2560),
    "cross_o": (2560, 7680),
    "ff1": (7680, 10240),
    "ff2": (10240, 7680),
}

# rows, width: real ones of the three rank counts and of avatar-5b, and odd ones
REAL_ROWS: tuple[tuple[int, int], ...] = ((748, 7680), (748, 10240), (748, 2560), (748, 3072))
ODD_ROWS: tuple[tuple[int, int], ...] = ((1, 32), (3, 96), (5, 200), (7, 1000))


def attention_blocks(fp8: bool) -> tuple[int, int, int, int]:
    """(queries, keys, warps, stages) of one program."""
    return ATTENTION["fp8" if fp8 else "bf16"]


def conv_blocks(columns: int, fp8: bool) -> tuple[int, int, int, int]:
    """(columns, channels a turn, warps, stages); `thin` for the picture's few channels."""
    if columns % 256 == 0:
        return CONV["fp8" if fp8 else "bf16"]
    return CONV["bf16 narrow" if columns % 128 == 0 else "bf16 thin"]
