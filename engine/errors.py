"""The one error type that may reach a user, and its codes.

Knows nothing of transports or widgets: `str(error)` is one line a person can act on.
"""

from __future__ import annotations

# code -> exit status of a command that ends with it (2 bad input, 1 the thing fell short)
CODES: dict[str, int] = {
    "bad_input": 2,
    "bad_picture": 2,
    "no_face": 2,
    "face_unusable": 2,
    "bad_audio": 2,
    "bad_character": 2,
    "bad_config": 2,
    "bad_message": 2,
    "protocol_version": 2,
    "insecure_bind": 2,
    "unknown_model": 2,
    "bad_checkpoint": 2,
    "not_ready": 1,
    "missing_asset": 1,
    "worker_died": 1,
    "timeout": 1,
    "device_lost": 1,
    "out_of_memory": 1,
    "cancelled": 1,
    "internal": 1,
}


def first_line(error: BaseException) -> str:
    """What an error says, cut to its first line; the name of its type when it says nothing."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__


def named_line(error: BaseException) -> str:
    """The same behind the name of its type: for a fault of ours, where the type tells most."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


class EngineError(Exception):
    """What went wrong (`message`, with the value and the limit) and what to do (`hint`)."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        assert code in CODES, f"unknown error code {code!r}; add it to CODES"
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def exit_status(self) -> int:
        return CODES[self.code]

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message
