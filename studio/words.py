"""What the state means in words and tones: status bar, banner over the picture, live button.

Pure functions from views to text, so that every state has its words and a test can read them all.
"""

from __future__ import annotations

from pathlib import Path

from studio.edited_character import Source
from studio.state import CharacterView, EngineView, SessionView, VoiceView
from studio.widgets.frame_view import Banner

ENGINE: dict[str, tuple[str, str]] = {
    "starting": ("Engine starting", "warning"),
    "connecting": ("Connecting to the engine", "warning"),
    "ready": ("Engine ready", "live"),
    "lost": ("Engine does not answer", "danger"),
    "recovering": ("Engine restarting", "danger"),
    "failed": ("Engine failed", "danger"),
}


def engine_words(engine: EngineView, session: SessionView) -> tuple[str, str]:
    """(text, tone) for the status bar."""
    text, tone = ENGINE[engine.link]
    if engine.link != "ready":
        return (f"{text}: {engine.detail}" if engine.detail else text), tone
    where = "" if engine.local else f" at {engine.endpoint}"
    parts = [f"{text}{where}", session.model]
    if session.kernel_path:
        parts.append(session.kernel_path)
    if session.ranks:
        parts.append(session.ranks)
    if engine.restarts:
        parts.append(f"restarted {engine.restarts}×")
    return " · ".join(parts), tone


def voice_words(voice: VoiceView) -> tuple[str, str]:
    lost = voice.device_lost.split(":")[0]  # "microphone: why"
    if lost and (lost, voice.kind) != ("microphone", "file"):
        return f"{sentence(lost)} missing", "danger" if voice.microphones else "disabled"
    if voice.kind == "file":
        return short(Path(voice.file).name) or "Audio file", "live" if voice.playing else "disabled"
    if voice.muted:
        return "Microphone muted", "warning"
    if voice.kind == "microphone":
        return short(voice.microphone or "Default microphone"), "live"
    return "No voice yet", "disabled"


def session_words(session: SessionView, engine: EngineView) -> tuple[str, str]:
    """State, age and the engine's memory: what an operator watches during an hour."""
    names = {"NOT_READY": "Preparing", "READY": "At rest", "RUNNING": "Talking"}
    text = names.get(session.state, session.state.capitalize())
    if session.state == "RUNNING" and not session.live:
        text = "At rest"
    if session.state == "FAILED" and session.message:
        text = f"Failed: {session.message}"
    parts = [text]
    if session.age_s >= 1:
        minutes, seconds = divmod(int(session.age_s), 60)
        parts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}")
    if engine.health is not None:
        health = engine.health
        parts.append(f"{health.rss_bytes / 1e6:.0f} MB · {health.cpu_percent:.0f} % CPU")
    tones = {"RUNNING": "live", "FAILED": "danger", "NOT_READY": "warning"}
    tone = "disabled" if text == "At rest" else tones.get(session.state, "disabled")
    return " · ".join(parts), tone


def banner(
    engine: EngineView, session: SessionView, character: CharacterView, trouble: str = ""
) -> Banner | None:
    """The one line over the picture, the most urgent first; None when all is well.

    `trouble` is why the character could not be put on stage, if it could not.
    """
    if engine.link in ("starting", "connecting"):
        where = "Starting the engine…" if engine.local else f"Connecting to {engine.endpoint}…"
        return Banner(sentence(engine.detail) or where, "accent", busy=True, hold=True)
    if engine.link == "lost":
        where = f" at {engine.endpoint}" if engine.endpoint else ""
        text = f"No answer from the engine{where}: trying again"
        return Banner(text, "danger", busy=True, hold=True)
    if engine.link == "recovering":
        why = f" ({engine.detail})" if engine.detail else ""
        text = f"Engine restarting{why}: the last picture is held"
        return Banner(text, "danger", busy=True, hold=True)
    if engine.link == "failed":
        text = sentence(engine.detail) or "The engine does not start: see the log (F5)"
        return Banner(text, "danger", hold=True)
    if session.state == "FAILED":
        return Banner(_with_hint(session.message, session.hint), "danger", hold=True)
    if session.stalled:
        return Banner("No new picture for a second: the engine is behind", "warning", busy=True)
    if character.busy and not character.loaded:
        return Banner(sentence(character.what) or "Preparing the character…", "accent", busy=True)
    if trouble and not character.loaded:
        return Banner(sentence(trouble), "danger", hold=True)
    return None


def sentence(text: str) -> str:
    """With a capital letter (engine messages are parts of sentences), but not in a file's name."""
    first = text.split(" ", 1)[0].rstrip(".")
    return text if "." in first else text[:1].upper() + text[1:]


def short(name: str, longest: int = 36) -> str:
    """A name that fits the status bar."""
    return name if len(name) <= longest else f"{name[: longest - 1].rstrip()}…"


def saved_words(source: Source, licence: str, unsaved: bool) -> str:
    """Whether the character is on disk, in the panel's few words."""
    if unsaved:
        return "Unsaved changes"
    if source.starter:
        return licence or "Starter character"
    return f"Saved as {source.path.name}" if source.path else "Not saved yet"


def live_word(voice: VoiceView) -> str:
    return "Play" if voice.kind == "file" else "Go live"


def hud_note(session: SessionView) -> str:
    return "late" if session.late and session.live else ""


def recording_words(seconds: float, paused: bool) -> str:
    text = f"{int(seconds // 60)}:{int(seconds % 60):02}"
    return f"{text} paused" if paused else text


def _with_hint(message: str, hint: str) -> str:
    return f"{message}: {hint}" if hint else message or "The session failed"
