"""The `validate` part of `avatar-qa`: options, progress on stderr, one JSON object, exit status.

0 the ruler measures, 1 it fell short, 2 bad input. Knows nothing of how faults are planted.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from engine.arguments import Parser
from engine.errors import EngineError
from engine.qa.clip_set import ASSETS_QA
from engine.qa.validate import Options, said, validate


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="one clip a test character, < 1 min")
    parser.add_argument("--still", action="store_true", help="heads stand still: 2.5 x cheaper")
    parser.add_argument("--out", type=Path, help="folder to keep results in and to resume from")
    parser.add_argument("--set", type=Path, default=ASSETS_QA, help="folder of the clip set")
    parser.add_argument("--real", type=Path, help="folder of GRID clips: real speakers")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0 is one a core")
    parser.add_argument("--clips", nargs="+", default=[], metavar="ID", help="these clips only")
    parser.add_argument("--faults", nargs="+", default=[], metavar="NAME", help="these faults only")
    parser.add_argument("--models", type=Path, help="folder of the face models")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Raises EngineError."""
    if arguments.workers < 0:
        raise EngineError("bad_input", f"--workers is {arguments.workers}", "give 0 or more")
    options = Options(
        quick=arguments.quick, still=arguments.still, out=arguments.out,
        set_folder=arguments.set, real=arguments.real,
        models=arguments.models, workers=arguments.workers, faults=tuple(arguments.faults),
        clips=tuple(arguments.clips),
    )  # fmt: skip
    begun = time.monotonic()

    def progress(done: int, of: int, what: str) -> None:
        spent = time.monotonic() - begun
        rest = spent * (of - done) / max(done, 1)
        line = f"{done} of {of} measured, {what}, about {rest:.0f} s left"
        print(line, file=sys.stderr)  # noqa: T201

    found = validate(options, progress)
    if options.out is not None:
        text = msgspec.json.format(msgspec.json.encode(found), indent=1)
        (options.out / "validation.json").write_bytes(text)
    if arguments.json:
        print(msgspec.json.encode(found).decode())  # noqa: T201
    else:
        print("\n".join(said(found)))  # noqa: T201
        print("the ruler measures" if found.passed else "the ruler fell short")  # noqa: T201
    return 0 if found.passed else 1


def main(argv: list[str]) -> int:
    parser = Parser(prog="avatar-qa validate", description=(__doc__ or "").split("\n\n")[0])
    add_options(parser)
    try:
        return run(parser.parse_args(argv))
    except EngineError as error:
        print(f"avatar-qa: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
