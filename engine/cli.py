"""The command line of `avatar-engine`: serve, render, bench, doctor, train.

One JSON object on stdout with --json, everything else on stderr; exit 0 good, 1 fell short, 2 bad
input with one line. Knows nothing of what the commands do inside: they are imported when used.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.arguments import Parser
from engine.config import Config, make_config, read_config_file
from engine.errors import EngineError
from engine.folders import Folders, default_checkpoints
from engine.log import LOG, set_up
from engine.models import MODELS

INTERRUPTED = 130  # exit status after Ctrl-C, as shells expect


def run(argv: list[str], environment: Mapping[str, str]) -> int:
    """The whole command; returns its exit status."""
    parser = build_parser()
    options, rest = parser.parse_known_args(argv)
    options.rest = rest
    if options.rest and not options.passes_on:
        parser.error(f"unknown option {options.rest[0]!r}")
    set_up(environment.get("AVATAR_LOG", "info"))
    default_cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    options.cache_dir = (options.cache_dir or default_cache / "avatar-studio").absolute()
    if environment.get("AVATAR_MODELS"):
        options.models_dir = options.models_dir or Path(environment["AVATAR_MODELS"])
    options.environment = environment
    if options.command == "serve":
        options.runtime_dir = options.runtime_dir or environment.get("XDG_RUNTIME_DIR")
    try:
        options.checkpoints = named_checkpoints(options)
        options.folders = Folders(options.cache_dir, options.models_dir, options.checkpoints)
        return options.run(options)
    except EngineError as error:
        return report(error, options.json)
    except KeyboardInterrupt:
        print("avatar-engine: stopped", file=sys.stderr)  # noqa: T201
        return INTERRUPTED
    except Exception as error:  # the top of the process: no traceback reaches a user
        LOG.debug("unexpected", exc_info=True)
        cause = EngineError(
            "internal", f"{type(error).__name__}: {error}",
            "this is a fault of the engine; AVATAR_LOG=debug shows where",
        )  # fmt: skip
        return report(cause, options.json)


def report(error: EngineError, as_json: bool) -> int:
    print(f"avatar-engine: {error}", file=sys.stderr)  # noqa: T201
    if as_json:
        emit({"error": {"code": error.code, "message": error.message, "hint": error.hint}})
    return error.exit_status


def emit(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value), flush=True)  # noqa: T201


def build_parser() -> Parser:
    parser = Parser(prog="avatar-engine", description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for add in (_add_serve, _add_render, _add_bench, _add_doctor, _add_train):
        add(commands)
    return parser


def named_checkpoints(options: argparse.Namespace) -> tuple[Path, ...]:
    """Where public models are looked for. A --model that is a path becomes one of them, and keeps
    its path as its name.
    """
    named = [path.absolute() for path in options.checkpoints]
    model = getattr(options, "model", None)
    if model and model not in MODELS and Path(model).exists():
        options.model = str(Path(model).absolute())
        named.insert(0, Path(options.model))
    if missing := [path for path in named if not path.exists()]:
        raise EngineError("missing_asset", f"{missing[0]} does not exist", "check the spelling")
    return (*named, default_checkpoints())


def _command(commands: Any, name: str, text: str, run: Callable[[Any], int]) -> Parser:
    parser: Parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--cache-dir", type=Path, help="prepared characters are kept here")
    parser.add_argument("--models-dir", type=Path, help="where the face models are")
    parser.add_argument(
        "--checkpoints", type=Path, action="append", default=[], metavar="DIR",
        help="a folder of public video models; may be repeated",
    )  # fmt: skip
    parser.set_defaults(run=run, passes_on=False)
    return parser


def _add_serve(commands: Any) -> None:
    parser = _command(commands, "serve", "the engine process that a studio talks to", _serve)
    parser.add_argument("--config", type=Path, help="a TOML file with the same keys")
    parser.add_argument("--bind", help="ipc (default), or a host for tcp")
    parser.add_argument("--port", type=int, help="of the control lane; 0: free ones")
    parser.add_argument("--runtime-dir", type=Path, help="where the sockets' folder is made")
    parser.add_argument("--curve-key-dir", type=Path, help="keys; needed beyond this machine")
    parser.add_argument("--parent-pid", type=int, help="exit when this process is gone")
    parser.add_argument(
        "--model", help="name, or the folder or file of a public model; sessions may ask for others"
    )
    parser.add_argument("--gpus", help="N+M: N GPUs denoise, M (0 or 1) decodes; default 1+0")
    parser.add_argument("--no-token", dest="token", action="store_false", default=None)
    parser.add_argument("--model-module", help="imported in every worker; may add models")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"])


def _add_render(commands: Any) -> None:
    parser = _command(commands, "render", "a picture and a voice become an MP4 file", _render)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--image", type=Path, help="any common picture format")
    who.add_argument("--character", type=Path, help="a character saved by the studio")
    parser.add_argument("--audio", type=Path, required=True, help="any common audio format")
    parser.add_argument("--out", type=Path, required=True, help="the MP4 file to write")
    parser.add_argument(
        "--model", default="portrait", help="name, or the folder or file of a public model"
    )
    parser.add_argument(
        "--synthetic", action="store_true", help="video models: random weights, noise and no face"
    )
    parser.add_argument("--gpus", default="1+0", help="video models: N GPUs denoise, M decodes")
    parser.add_argument(
        "--decoder", choices=["full", "taehv"], default="full",
        help="public models: taehv is the small decoder of a taew file, faster and softer",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="of blinks and head motion (default 1)")
    parser.add_argument("--settings", default="", help="such as mouth=1.2,head=0.5")
    parser.add_argument("--model-module", default="", help="imported first; may add models")


def _add_bench(commands: Any) -> None:
    parser = _command(commands, "bench", "how fast this machine is", _bench)
    parser.add_argument("--model", default="portrait")
    parser.set_defaults(passes_on=True)  # further options are the model's benchmark's


def _add_doctor(commands: Any) -> None:
    _command(commands, "doctor", "what this machine has and lacks, and the remedies", _doctor)


def _add_train(commands: Any) -> None:
    parser = _command(commands, "train", "train one of the small models", _train)
    parser.add_argument("what", help="audio")
    parser.set_defaults(passes_on=True)  # further options are the training's


def serve_config(options: argparse.Namespace) -> Config:
    """The TOML file's keys, overridden by the command line's."""
    values: dict[str, Any] = read_config_file(options.config) if options.config else {}
    for key in (
        "bind", "port", "runtime_dir", "curve_key_dir", "parent_pid", "token", "model", "gpus",
        "model_module", "log_level", "cache_dir", "models_dir",
    ):  # fmt: skip
        value = getattr(options, key)
        if value is not None and not (key in ("cache_dir", "runtime_dir") and key in values):
            values[key] = value
    values["checkpoints"] = [*options.checkpoints, *values.get("checkpoints", ())]
    return make_config(values)


def check_gpus(text: str, model: str, module: str, environment: Mapping[str, str]) -> None:
    """Raises EngineError for what this model or this machine cannot run."""
    from engine import gpus

    wanted = gpus.parse(text)
    if wanted.total == 1:
        return
    if model in MODELS and not module:  # else the module or the checkpoint knows
        gpus.check_model(wanted, model)
    present = gpus.present(environment)
    gpus.check_machine(wanted, present)
    LOG.info("each session on %s", wanted.sentence("cuda" if present else "cpu"))


def _serve(options: argparse.Namespace) -> int:
    from engine.launch import adopt_orphans
    from engine.server import Server

    config = serve_config(options)
    check_gpus(config.gpus, config.model, config.model_module, options.environment)
    if options.log_level:
        set_up(config.log_level)
    adopt_orphans()
    server = Server(config)

    def stop(number: int, frame: Any) -> None:
        server.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.run(lambda line: print(line, flush=True))  # noqa: T201
    LOG.info("engine stopped")
    return 0


def _render(options: argparse.Namespace) -> int:
    from engine.render import render_command

    _set_cv2_threads()
    check_gpus(options.gpus, options.model, options.model_module, options.environment)
    if options.model_module:
        importlib.import_module(options.model_module)
    result = render_command(options)
    if options.json:
        emit(result)
    return 0


def _bench(options: argparse.Namespace) -> int:
    from engine.bench import run_bench

    _set_cv2_threads()
    return run_bench(options.model, options.rest, options.json, options.folders)


def _doctor(options: argparse.Namespace) -> int:
    from engine.doctor import examine, print_table

    rows = examine(options.folders)
    if options.json:
        keys = ("what", "status", "found", "remedy")
        emit({"rows": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        print_table(rows)
    return 1 if any(status == "missing" for _, status, _, _ in rows) else 0


def _train(options: argparse.Namespace) -> int:
    trainings = {"audio": "engine.speech.train"}
    if options.what not in trainings:
        raise EngineError(
            "bad_input", f"there is no training of {options.what!r}", f"use {', '.join(trainings)}"
        )
    main = importlib.import_module(trainings[options.what]).main
    arguments = [*options.rest, *(["--json"] if options.json else [])]
    return int(main(arguments) or 0)


def _set_cv2_threads() -> None:
    with contextlib.suppress(ImportError):
        import cv2

        cv2.setNumThreads(1)
