"""Block shapes by measurement, and the real and odd shapes that tests and benchmarks use.

Knows nothing of devices: a table a person can read and change.
"""

from __future__ import annotations

TOKENS = 748  # of one chunk at 704x1088: 22 x 34

# (queries, keys, warps, stages) of ring attention; head_dim 128, 748 queries, 5,984 keys, H200.
# fp8, 20 heads: 68 us, against 84 for (128, 128, 8, 3). Beyond 264 programs (2 a multiprocessor)
# the smaller one wins, because 3 of it fit: 30 heads 110 us against 131.
ATTENTION: dict[str, tuple[int, int, int, int]] = {
    "bf16": (64, 64, 4, 3),
    "fp8": (64, 128, 4, 3),
    "fp8 crowded": (64, 64, 4, 3),
}
CROWDED = 264  # programs

# (columns, channels a turn, warps, stages) of the causal convolution, 128 rows a tile
CONV: dict[str, tuple[int, int, int, int]] = {
    "bf16": (256, 64, 8, 3),  # 797 TFLOP/s; 4 stages 765; cuDNN 802 here and 721 at 256 channels
    "fp8": (256, 128, 8, 3),  # 1,514 TFLOP/s
    "bf16 narrow": (128, 64, 8, 4),
    # Wan2.1's decoder has 192 and 96 columns; these two are chosen, not yet measured
    "bf16 slim": (64, 64, 4, 4),
    "bf16 slimmer": (32, 64, 4, 4),
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


def attention_blocks(queries: int, heads: int, fp8: bool) -> tuple[int, int, int, int]:
    """(queries, keys, warps, stages) of one program."""
    if not fp8:
        return ATTENTION["bf16"]
    crowded = -(-queries // 64) * heads > CROWDED
    return ATTENTION["fp8 crowded" if crowded else "fp8"]


def conv_blocks(columns: int, fp8: bool) -> tuple[int, int, int, int]:
    """(columns, channels a turn, warps, stages); `thin` for the picture's few channels."""
    if columns % 256 == 0:
        return CONV["fp8" if fp8 else "bf16"]
    for name in ("bf16 narrow", "bf16 slim", "bf16 slimmer"):
        if columns % CONV[name][0] == 0:
            return CONV[name]
    return CONV["bf16 thin"]
