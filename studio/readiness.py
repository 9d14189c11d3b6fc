"""What is missing before a character can go live, as the one line a person needs. Pure."""

from __future__ import annotations

from engine.errors import EngineError
from studio.state import StudioState


def what_is_missing(state: StudioState, is_running: bool) -> EngineError | None:
    """None when all is there: a character on stage and a voice."""
    if state.character.spec is None:
        return EngineError("not_ready", "there is no character yet", "open or drop a picture")
    if not is_running and state.session.state != "COMPLETED":
        hint = "it begins by itself" if state.character.busy else "open it again, or another one"
        return EngineError("not_ready", "the character is not on stage yet", hint)
    if state.voice.kind == "none":
        return EngineError("not_ready", "there is no voice", "choose a microphone or a file")
    return None
