"""A user's own folder as a set: recordings to render, or finished videos of any other system.

`name.wav` (or any audio) with `name.txt` beside it is a clip with words; `name.mp4` (or any video)
is scored as it is, from its own sound and at its own frame times. A first line `language: fr` in
the text says which language; English otherwise. Without a text, or without the aligner, a clip has
no phones and says why. Nothing in the folder is changed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import av
from av.error import FFmpegError
from av.stream import Disposition

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa.alignment import Alignment, read_alignment
from engine.qa.clip_set import ASSETS_QA, Clip, ClipSet, load_set
from engine.qa.forced import forced_alignment, unavailable

AUDIO = frozenset([".wav", ".flac", ".opus", ".ogg", ".mp3", ".m4a", ".aac"])
VIDEO = frozenset([".mp4", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".m4v"])
SHORTEST_S, LONGEST_S = 1.0, 600.0
NO_TEXT = "no text beside it: phones are not known, so only phone-free figures are given"


def load_folder(folder: Path, character: str = "mira") -> ClipSet:
    """Every recording and video of the folder, by name; what cannot be read is kept for the run.

    A damaged file becomes a clip whose `no_phones` tells why, so that the run reports it as failed
    and goes on.

    Raises:
        EngineError: "bad_input" when the folder is missing or holds no audio and no video.
    """
    if not folder.is_dir():
        raise EngineError("bad_input", f"{folder} is no folder", "name a folder of clips")
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in AUDIO | VIDEO)
    if not paths:
        kinds = " ".join(sorted(AUDIO | VIDEO))
        raise EngineError("bad_input", f"{folder} holds no clip", f"put files there: {kinds}")
    shipped = load_set(ASSETS_QA, verify=False)
    if character not in shipped.characters:
        known = ", ".join(shipped.characters)
        raise EngineError("bad_input", f"no character is called {character!r}", f"one of {known}")
    return ClipSet(
        version="user",
        hash=_folder_hash(paths),
        clips=tuple(_user_clip(path, paths, character) for path in paths),
        characters=shipped.characters,
        margins=shipped.margins,
    )


def _user_clip(path: Path, paths: list[Path], character: str) -> Clip:
    text, language = _text(path)
    video = path if path.suffix.lower() in VIDEO else None
    aligned, why, samples = _aligned(path, text, language)
    doubles = sum(p.stem == path.stem for p in paths) > 1
    return Clip(
        id=path.name if doubles else path.stem,
        audio=path,
        language=language,
        speaker="user",
        source=path.name,
        licence="the user's own",
        text=text,
        character=character,
        split="user",
        exact_times=bool(aligned and aligned.exact),
        heard_in_training="unknown",
        samples=samples,
        alignment_file=None,
        no_phones=why,
        video=video,
        aligned=aligned,
    )


def _text(path: Path) -> tuple[str, str]:
    """(what is said, language); empty and "en" without a text file."""
    beside = path.with_suffix(".txt")
    if not beside.is_file():
        return "", "en"
    lines = beside.read_text("utf-8-sig", errors="replace").strip().splitlines()
    if lines and lines[0].lower().startswith("language:"):
        return " ".join(lines[1:]).strip(), lines[0].split(":", 1)[1].strip().lower() or "en"
    return " ".join(lines).strip(), "en"


def _aligned(path: Path, text: str, language: str) -> tuple[Alignment | None, str, int]:
    """(phones, why there are none, samples); never raises for a bad clip."""
    if path.suffix.lower() in AUDIO and _is_film(path):
        name = path.with_suffix(".mp4").name
        return None, f"{path.name} is a video: call it {name} to have its own picture scored", 0
    try:
        pcm = read_whole(path)
    except EngineError as error:
        return None, _why(path, error), 0
    if not SHORTEST_S * 48_000 <= len(pcm) <= LONGEST_S * 48_000:
        seconds = len(pcm) / 48_000
        return None, f"{seconds:.1f} s, allowed {SHORTEST_S:g} to {LONGEST_S:g} s", len(pcm)
    if (given := path.with_suffix(".json")).is_file():
        try:
            return read_alignment(given), "", len(pcm)
        except EngineError as error:
            return None, str(error), len(pcm)
    if not text:
        return None, NO_TEXT, len(pcm)
    if why := unavailable(language):
        return None, why, len(pcm)
    try:
        return forced_alignment(pcm, text, language), "", len(pcm)
    except EngineError as error:
        return None, str(error), len(pcm)


def _is_film(path: Path) -> bool:
    """Whether there are moving pictures in it; a cover beside music is none."""
    try:
        with av.open(str(path)) as file:
            return any(not s.disposition & Disposition.attached_pic for s in file.streams.video)
    except (FFmpegError, OSError, ValueError):
        return False


def _why(path: Path, error: EngineError) -> str:
    """What is wrong with a file, and what to do about it in a folder of clips."""
    if path.suffix.lower() not in VIDEO:
        return str(error)
    problem = error.message.replace(" as audio", "")
    return f"{problem}: a video is scored from its own picture and sound, it needs both"


def _folder_hash(paths: list[Path]) -> str:
    """Over names and bytes, texts included."""
    digest = hashlib.sha256()
    for path in paths:
        for part in (path, path.with_suffix(".txt"), path.with_suffix(".json")):
            if part.is_file():
                with part.open("rb") as file:
                    inner = hashlib.file_digest(file, "sha256")
                digest.update(part.name.encode() + b"\0" + inner.digest())
    return digest.hexdigest()
