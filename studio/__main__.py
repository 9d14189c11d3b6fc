"""`avatar-studio`: command line, logging of faults, event loop. The only reader of the environment.

Knows nothing of how the studio is put together; that is `app.py`.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from pathlib import Path

from engine.errors import EngineError
from studio.settings import StudioSettings, add_flags, overrides_from

ENDPOINT = r"tcp://[^\s:/]+:\d{1,5}|tcp://\[[\da-fA-F:]+\]:\d{1,5}|ipc://.+"

LAST_PORT = 65_535


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="avatar-studio", description="One picture and one voice become a talking face, live."
    )
    add_flags(made)
    made.add_argument("--settings", type=Path, help="settings file; drafts lie beside it")
    return made


def check_endpoint(endpoint: str) -> None:
    """Refuse an engine address that cannot be one, before a window opens."""
    port = endpoint.rpartition(":")[2] if endpoint.startswith("tcp://") else "1"
    known = re.fullmatch(ENDPOINT, endpoint) and 1 <= int(port) <= LAST_PORT
    if endpoint and not known:
        raise EngineError(
            "bad_input", f"engine {endpoint!r} is no address", "use tcp://host:port or ipc://path"
        )


def settings_path() -> Path:
    import platformdirs

    return Path(platformdirs.user_config_dir("avatar-studio")) / "studio.json"


def main(argv: list[str] | None = None) -> int:
    """Run the studio; 0 good, 1 it failed, 2 bad input."""
    arguments = parser().parse_args(argv)
    path = arguments.settings or settings_path()
    try:
        settings = StudioSettings(path, overrides_from(arguments))
        check_endpoint(settings.text("engine"))
        return run(settings, path.parent / "draft.avatar")
    except EngineError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_status


def run(settings: StudioSettings, draft: Path) -> int:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from studio import error_dialog, theme
    from studio.app import StudioApp

    application = QApplication(sys.argv[:1])
    application.setApplicationName("Avatar Studio")
    application.setDesktopFileName("avatar-studio")
    theme.apply(application)
    studio = StudioApp(settings, draft=draft)
    sys.excepthook = error_dialog.hook(
        studio.window, lambda text: studio.window.log.add("error", "studio", text)
    )
    # A signal may arrive in the middle of a paint: leave from the event loop, not from there.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: QTimer.singleShot(0, studio.leave))
    # Python sees a signal only when its code runs: a slow timer gives it the chance.
    heartbeat = QTimer()
    heartbeat.timeout.connect(lambda: None)
    heartbeat.start(500)
    studio.start()
    status = application.exec()
    studio.shut_down()
    return status


if __name__ == "__main__":
    sys.exit(main())
