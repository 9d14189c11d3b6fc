"""Cases that set a fast path beside its truth: the same inputs, outputs compared as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kernels.grid import Grid
from kernels.reference import FP8


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    args: tuple[Any, ...]
    outputs: tuple[int, ...]  # which arguments are written


def relative_error(got: Tensor, want: Tensor) -> float:
    got, want = got.double(), want.double()
    error = ((got - want).norm() / want.norm().clamp_min(1e-12)).item()
    return error if error == error else float("inf")  # NaN never passes


class Draw:
    """Drawn where they are used: every op's test draws all cases, 8 s each on one core of a CPU."""

    def __init__(self, device: str, dtype: torch.dtype, seed: int = 0) -> None:
        self.device, self.dtype = device, dtype
        self.source = torch.Generator(device).manual_seed(seed)

    def __call__(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        drawn = torch.randn(shape, generator=self.source, device=self.device)
        return drawn.to(dtype or self.dtype)

    def blank(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Poisoned, so that an element never written is found."""
        kind = dtype or self.dtype
        if kind == FP8:
            return torch.full(shape, 0x5A, dtype=torch.uint8, device=self.device).view(FP8)
        return torch.full(shape, 77.0, device=self.device).to(kind)

    def int32(self, value: int) -> Tensor:
        return torch.tensor([value], dtype=torch.int32, device=self.device)


def row_cases(draw: Draw, shapes: tuple[tuple[int, int], ...]) -> Iterator[Case]:
    static = torch.tensor([0.02], device=draw.device)
    for rows, width in shapes:
        f32 = [draw(width, dtype=torch.float32) for _ in range(3)]
        for mode in ("plain", "tensor", "row"):
            out = draw.blank(rows, width, dtype=draw.dtype if mode == "plain" else FP8)
            per_row = torch.zeros(rows, 1, device=draw.device)
            scale = {"plain": None, "tensor": static, "row": per_row}[mode]
            written = (0, 5, 6) if mode == "row" else (0, 5)
            x, y = draw(rows, width), draw(rows, width)
            label = f"{rows}x{width} {mode}"
            yield Case(f"residual_norm {label}", "residual_norm", (x, y, *f32, out, scale), written)
            no_y = (x, None, None, *f32[1:], out, scale)
            yield Case(f"residual_norm {label} no residual", "residual_norm", no_y, written)
            no_gate = (x, y, None, *f32[1:], out, scale)
            yield Case(f"residual_norm {label} no gate", "residual_norm", no_gate, written)
            yield Case(f"gelu {label}", "gelu", (x, out, scale), (1,))
            if mode != "plain":
                yield Case(f"quantise {label}", "quantise", (x, out, scale), (1,))
        label = f"{rows}x{width}"
        yield Case(f"residual_gate {label}", "residual_gate", (x, y, f32[0]), (0,))
        blank = draw.blank(rows, width)
        yield Case(f"rms_norm {label}", "rms_norm", (x, f32[0], blank), (2,))
        sums = draw(rows, 1, dtype=torch.float32).square() * width
        shared = (x, f32[0], blank, sums, 3 * width)
        yield Case(f"rms_norm {label} shared", "rms_norm", shared, (2,))
        blank = draw.blank(rows, 2, dtype=torch.float32)
        args = (draw(rows, 3 * width), width, blank)
        yield Case(f"square_sums {label}", "square_sums", args, (2,))


def ring_cases(draw: Draw, sizes: tuple[tuple[int, int, int, int], ...]) -> Iterator[Case]:
    """sizes: (new rows, heads, head_dim, ring rows)."""
    for rows, heads, head_dim, ring in sizes:
        width, row = heads * head_dim, ring - rows - 3
        qkv = draw(rows, 3 * width)
        weights = [draw(width, dtype=torch.float32).abs() for _ in range(2)]
        angle = draw(rows, head_dim // 2, dtype=torch.float32)
        phases = angle.cos(), angle.sin()
        length = draw.int32(ring - 5)
        for fp8 in (False, True):
            kind = FP8 if fp8 else draw.dtype
            label = f"{rows}x{heads}x{head_dim} of {ring}{' fp8' if fp8 else ''}"
            q, k, v = (draw(n, heads, head_dim).to(kind) for n in (rows, ring, ring))
            v = v.permute(1, 2, 0).contiguous() if fp8 else v
            args = (qkv, *weights, *phases, draw.int32(row), q, k, v, fp8)
            yield Case(f"qk_norm_rope_store {label}", "qk_norm_rope_store", args, (6, 7, 8))
            sums = draw(rows, 2, dtype=torch.float32).square() * width
            args = (*args, sums, 2 * width)
            yield Case(f"qk_norm_rope_store {label} shared", "qk_norm_rope_store", args, (6, 7, 8))
            raw, big = draw(2, rows, heads, head_dim), draw(2, ring, heads, head_dim).to(kind)
            yield Case(f"rotate_rows {label}", "rotate_rows", (raw, *phases, big[:, :rows]), (3,))
            out = draw.blank(rows, width)
            args = (q, k, v, length, out, None, fp8)
            yield Case(f"ring_attention {label}", "ring_attention", args, (4,))
            scale = torch.tensor([0.005], device=draw.device)
            out8 = draw.blank(rows, width, dtype=FP8)
            args = (q, k, v, length, out8, scale, fp8)
            yield Case(f"ring_attention {label} to fp8", "ring_attention", args, (4,))


def picture_cases(
    draw: Draw, sizes: tuple[tuple[int, int, int, int, int], ...], fp8: tuple[bool, ...]
) -> Iterator[Case]:
    """sizes: (height, width, channels, columns out, frames)."""
    for height, width, channels, columns, frames in sizes:
        grid = Grid(height, width)
        x = draw(frames * grid.rows, channels)
        gamma = draw(channels, dtype=torch.float32)
        for kind in [FP8 if flag else draw.dtype for flag in fp8]:
            label = f"{frames}x{height}x{width}x{channels}{' fp8' if kind == FP8 else ''}"
            slots, base = frames + 2, draw.int32(frames + 1)
            ring = torch.zeros(slots * grid.rows, channels, device=draw.device).to(kind)
            args = (x, gamma, ring, base, grid, frames)
            yield Case(f"norm_silu {label}", "norm_silu", args, (2,))
            for kt, ks in ((3, 3), (1, 3), (3, 1)):
                used = ring.clone()
                pixels = grid.pixels(used)
                pixels.copy_(draw(*pixels.shape).to(kind))
                weight = draw(columns, kt * ks * ks * channels).mul(0.05).to(kind)
                bias = draw(columns, dtype=torch.float32)
                out, residual = (
                    draw.blank(frames * grid.rows, columns),
                    draw(frames * grid.rows, columns),
                )
                name = f"causal_conv {label}->{columns} {kt}x{ks}"
                args = (used, weight, bias, out, base, grid, frames, (kt, ks), residual, 0.5)
                yield Case(name, "causal_conv", args, (3,))
        label = f"{frames}x{height}x{width}x{channels}"
        rows = grid.doubled().rows
        out = torch.zeros(2 * frames * rows, channels // 2 + 64, device=draw.device).to(draw.dtype)
        yield Case(f"upsample {label}", "upsample", (x, out, grid, frames, 2), (1,))
        for times, wide in ((2, channels), (1, channels // 2)):
            out = torch.zeros(times * frames * rows, wide, device=draw.device).to(draw.dtype)
            args = (x, out, grid, frames, times, times - 1)
            yield Case(f"spread {label} {times}", "spread", args, (1,))


def error_of(case: Case, fast: Callable[..., None], truth: Callable[..., None]) -> float:
    """Largest relative error over the case's outputs, each path on copies of its own."""
    results = []
    for function in (fast, truth):
        args = [a.clone() if isinstance(a, Tensor) else a for a in case.args]
        function(*args)
        results.append([args[i] for i in case.outputs])
    if case.op == "causal_conv":  # rows that are no pixels hold anything
        grid = case.args[5]
        results = [[grid.pixels(t) for t in found] for found in results]
    return max(relative_error(a, b) for a, b in zip(*results, strict=True))
