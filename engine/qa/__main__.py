"""Entry point of `avatar-qa`: run, validate, and what else has a module here.

One JSON object on stdout with --json, everything else on stderr; exit 0 good, 1 fell short, 2 bad
input with one line. The only place of the lip-sync measurement that reads the environment.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.errors import EngineError
from engine.qa.workers import one_core

# command -> module with add_options(parser) and, given the options and the cache folder, an action
COMMANDS = {
    "run": ("engine.qa.run_command", "run_command", "render and score clips into a folder"),
    "compare": ("engine.qa.compare_command", "run", "is one run worse than another?"),
    "report": ("engine.qa.report_command", "run", "a run's page, CSV and JSON"),
    "ruler": ("engine.qa.ruler_command", "run", "why believe this ruler? planted and found"),
    "validate": ("engine.qa.validate_command", "run", "plant faults: does the ruler measure?"),
}


def main() -> int:
    one_core()
    return run(sys.argv[1:], os.environ)


def run(argv: list[str], environment: Mapping[str, str]) -> int:
    """The whole command; returns its exit status."""
    from engine.arguments import Parser
    from engine.cli import emit
    from engine.log import LOG, set_up

    set_up(environment.get("AVATAR_LOG", "warning"))
    parser = Parser(
        prog="avatar-qa", description="Does the mouth fit the sound? Measured on pixels."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (module, _, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in argv[:1] or "--help" in argv:
            importlib.import_module(module).add_options(command)
    options = parser.parse_args(argv)
    default = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "avatar-studio"
    cache = (getattr(options, "cache_dir", None) or default).absolute()
    if environment.get("AVATAR_MODELS") and hasattr(options, "models"):
        options.models = options.models or Path(environment["AVATAR_MODELS"])
    module, function, _ = COMMANDS[options.command]
    action = getattr(importlib.import_module(module), function)
    try:
        return action(options, cache) if options.command == "run" else action(options)
    except EngineError as error:
        fault = error
    except KeyboardInterrupt:
        print("avatar-qa: stopped", file=sys.stderr)  # noqa: T201
        return 130
    except Exception as error:  # the top of the process: no traceback reaches a user
        LOG.debug("unexpected", exc_info=True)
        text = f"{type(error).__name__}: {error}"
        fault = EngineError(
            "internal", text, "a fault of the program; AVATAR_LOG=debug shows where"
        )
    print(f"avatar-qa: {fault}", file=sys.stderr)  # noqa: T201
    if getattr(options, "json", False):
        emit({"error": {"code": fault.code, "message": fault.message, "hint": fault.hint}})
    return fault.exit_status


if __name__ == "__main__":
    sys.exit(main())
