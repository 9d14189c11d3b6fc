"""A model in words: badge, what it needs, what keeps it from running, how fast it was.

Pure functions from the page's data to text and tones, so that every state has its words.
"""

from __future__ import annotations

from pathlib import Path

from engine.protocol.messages import ModelInfo
from studio.measurements import Measurement
from studio.models_view import NO_GPU, ModelsView, Work

FAMILIES = (
    "Wan2.1 1.3B and 14B, Wan2.2 TI2V-5B, Wan2.2-S2V-14B, Self-Forcing, CausVid, "
    "StreamDiffusionV2, LongLive 1 and 2, LiveAvatar, Krea Realtime, and their diffusers folders"
)
NOISE = "random weights: noise, not a face"
GIB, GB = 2**30, 1e9
WORK = {"load": "Loading", "unload": "Unloading", "measure": "Measuring", "use": "Putting on stage"}


def ordered(models: tuple[ModelInfo, ...]) -> list[ModelInfo]:
    """The built-in portrait, then what is installed, then the geometries without weights."""
    return sorted(models, key=lambda m: (m.synthetic, bool(m.path)))


def title(model: ModelInfo) -> str:
    return model.name[:1].upper() + model.name[1:] if is_portrait(model) else model.name


def is_portrait(model: ModelInfo) -> bool:
    """Built in and with weights of its own."""
    return not model.path and not model.synthetic


def badge(model: ModelInfo, view: ModelsView) -> tuple[str, str]:
    """(a word or two, tone) for the list."""
    if view.work is not None and view.work.model == model.name:
        return WORK[view.work.kind].lower(), "accent"
    if model.name == view.on_stage:
        return "on stage", "live"
    if model.problem:
        return "refused", "danger"
    if model.lacks:
        return "incomplete", "warning"
    if model.loaded:
        return "loaded", "accent"
    if not model.fits:
        return "too large", "warning"
    return ("noise", "faint") if model.synthetic else ("ready", "soft")


def second_line(model: ModelInfo) -> str:
    """What it is, in the list."""
    if model.problem:
        return model.problem
    return NOISE if model.synthetic else model.layout


def licence(model: ModelInfo) -> tuple[str, str]:
    """(line, tone)."""
    if model.path:
        return model.licence, "warning" if model.non_commercial else ""
    return ("no weights" if model.synthetic else "part of Avatar Studio, Apache 2.0"), ""


def needs(model: ModelInfo, view: ModelsView) -> str:
    """Memory that it takes and that there is."""
    if not model.needs_bytes:
        return "little: it runs on any processor"
    fit = model.fit.removeprefix("needs ") or f"{model.needs_bytes / GIB:.1f} GiB"
    return fit if view.device == NO_GPU or not view.device else f"{fit} · {view.device}"


def verdict(model: ModelInfo) -> tuple[str, str]:
    """(fits or not, tone); empty for a model of unknown needs."""
    if not model.needs_bytes:
        return "", ""
    return ("fits", "live") if model.fits else ("does not fit", "danger")


def size(model: ModelInfo) -> str:
    return "" if not model.size_bytes else f"{_bytes(model.size_bytes)} on disk"


def hindrance(model: ModelInfo, view: ModelsView) -> str:
    """Why it cannot be used, loaded or measured, in one line; empty when it can."""
    if not view.ready:
        return "The engine does not answer at the moment"
    if view.work is not None:
        return f"{WORK[view.work.kind]} {view.work.model}: wait for it, or cancel it"
    if model.problem:
        return "The engine refuses its files"
    if model.lacks:
        return "Some of its files are missing"
    if not model.fits and view.device == NO_GPU:
        return "It needs more memory than is free: this machine would come to a halt"
    return ""


def cautions(model: ModelInfo, view: ModelsView) -> tuple[list[str], str]:
    """(lines, tone) of the note above the facts, the gravest first."""
    if view.told is not None and view.told.model == model.name:
        return [_capital(view.told.text)], view.told.tone
    if model.problem:
        return [_capital(model.problem)], "danger"
    if model.lacks:
        return [_capital(line) for line in model.lacks], "warning"
    lines = [_capital(line) for line in model.notes]
    if model.synthetic:
        lines.insert(0, "Random weights: its picture is noise, not a face. It is here for speed.")
    if not model.fits:
        remedy = "free some, then look again" if view.device != NO_GPU else "use a smaller model"
        lines.insert(0, f"It needs more memory than is free: {remedy}.")
    return lines, "info" if model.fits else "warning"


def progress(work: Work) -> str:
    what = f": {work.what}" if work.what else "…"
    return f"{WORK[work.kind]} {work.model}{what}"


def speed(row: Measurement) -> str:
    return f"{row.fps:.1f} frames a second" if row.fps >= 1 else f"{row.fps:.2f} frames a second"


def circumstances(row: Measurement) -> str:
    """When, where and how it was measured."""
    parts = [row.at, row.device, f"first picture after {row.first_chunk_ms / 1000:.1f} s"]
    parts += [f"{stage} {ms:.0f} ms a chunk" for stage, ms in row.stage_ms.items() if ms >= 0.5]
    parts.append(f"{row.frames} frames in {row.seconds:.0f} s, decoding included")
    if row.peak_bytes:
        parts.append(f"{row.peak_bytes / GIB:.1f} GiB at most")
    if row.beside:
        parts.append(f"with {row.beside} at rest on stage")
    if row.synthetic:
        parts.append("random weights")
    return " · ".join(parts)


def empty(view: ModelsView) -> tuple[str, str]:
    """(headline, what to do) while there is no installed model to show; else headline ""."""
    if not view.ready:
        return "Waiting for the engine", "Its models are listed as soon as it answers."
    if not view.supported:
        return (
            "This engine knows of no models",
            f"Engine {view.version or 'of that address'} is older than this page: "
            "update it to list, load and measure models. The portrait goes on working.",
        )
    if view.trouble:
        return "The models could not be listed", _capital(view.trouble)
    if view.listing and not view.models:
        return "Looking for models", "The first look takes some seconds."
    if view.installed or not view.models:
        return "", ""
    home = view.home or "the engine's folder of models"
    return "Add a model", f"Put the folder of a public model into {home}. Known: {FAMILIES}."


def places(view: ModelsView) -> str:
    """The device, and its memory that models may take."""
    if not view.models:
        return ""
    where = "graphics memory" if view.device != NO_GPU else "memory"
    return _capital(f"{view.device} · {view.free_bytes / GIB:.1f} GiB of {where} free")


def shown_path(path: str) -> str:
    """With ~ for the home folder."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(home + "/") else path


def _bytes(count: int) -> str:
    return f"{count / GB:.1f} GB" if count >= 0.1 * GB else f"{count / 1e6:.1f} MB"


def _capital(text: str) -> str:
    """With a capital, but not in the name of a file."""
    first = text.split(" ", 1)[0]
    return text if "." in first or "/" in first else text[:1].upper() + text[1:]
