"""The `run` part of `avatar-qa`: options, progress on stderr, a summary, exit status.

0 every clip was scored, 1 a clip failed, 2 bad input. Ctrl-C stops; the same command goes on.
Knows nothing of how clips are rendered or scored.
"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.cli import named_checkpoints
from engine.errors import EngineError
from engine.folders import Folders
from engine.progress_line import ProgressLine
from engine.qa.clip_set import ASSETS_QA, ClipSet, load_set
from engine.qa.cluster import check_spreadable, on_cluster
from engine.qa.jobs import DRIVES, Configuration
from engine.qa.lse import load_syncnet
from engine.qa.report import PRIMARY, ClipResult
from engine.qa.run import Progress, plan, run
from engine.qa.run_folder import RunFolder
from engine.qa.run_models import check_models, plain_name, processes
from engine.qa.scorer import scorer_hash
from engine.qa.user_clips import load_folder
from engine.qa.workers import Tools, do_all

SHOWN = (PRIMARY, "offset", "r0", "bilabial", "pause_shut")  # of the summary
STOPPED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="the run's folder, made or resumed")
    parser.add_argument("--name", default="", help="what the run is called (default: the folder)")
    what = parser.add_argument_group("what makes the videos")
    what.add_argument("--model", default="portrait", help="a name, or a public model's folder")
    what.add_argument(
        "--checkpoints", type=Path, action="append", default=[], metavar="DIR",
        help="a folder of public video models; may be repeated",
    )  # fmt: skip
    what.add_argument("--drive", default="audio", choices=DRIVES[:-1], help="what the motion hears")
    what.add_argument("--settings", default="", help="such as mouth=1.2,head=0.5")
    what.add_argument("--options", default="", help="of the model, such as frames_per_chunk=1")
    what.add_argument(
        "--configuration", action="append", default=[], metavar="NAME:KEY=VALUE,...",
        help="one of several: keys model, drive, settings as above, e.g. loud:drive=loudness",
    )  # fmt: skip
    what.add_argument("--seeds", default="1", help="such as 1,2,3: for the rerun band")
    which = parser.add_argument_group("which clips")
    which.add_argument("--set", type=Path, default=ASSETS_QA, help="folder of the clip set")
    which.add_argument("--clips", type=Path, help="your own folder of recordings or videos")
    which.add_argument("--character", default="mira", help="who speaks your recordings")
    which.add_argument("--split", choices=("tune", "test"))
    which.add_argument("--language", help="such as fr")
    which.add_argument("--only", nargs="+", metavar="ID", help="these clips only")
    which.add_argument("--again", nargs="+", default=[], metavar="ID", help="do these anew")
    which.add_argument("--retry-failed", action="store_true")
    parser.add_argument(
        "--workers", type=int, default=0,
        help="processes; 0 is one a core, or one alone for video models",
    )  # fmt: skip
    parser.add_argument(
        "--ray", metavar="ADDRESS",
        help="do it on the cores of a Ray cluster: HOST:PORT or auto. This machine must be a node "
        "of it, and each node set up as this one; clips, characters, face models and SyncNet "
        "weights are sent, video models are not. For rhubarb and headaudio their packages must be "
        "in each node's own cache folder. --workers 0 is all its cores",
    )  # fmt: skip
    parser.add_argument("--no-videos", action="store_true", help="keep no rendered video")
    parser.add_argument("--syncnet", type=Path, help="SyncNet weights: adds LSE-C and LSE-D")
    parser.add_argument("--cache-dir", type=Path, help="prepared characters are kept here")
    parser.add_argument("--models", type=Path, help="folder of the face models")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def configurations_of(options: argparse.Namespace) -> list[Configuration]:
    """Those of --configuration, or the one that the other options describe."""
    plain = Configuration(
        options.drive if options.drive != "audio" else plain_name(options.model),
        options.model,
        options.drive,
        numbers(options.settings),
        numbers(options.options),
    )
    return [_named(text, plain) for text in options.configuration] or [plain]


def _named(text: str, plain: Configuration) -> Configuration:
    """NAME:KEY=VALUE,... on top of the command's other options."""
    name, _, rest = text.partition(":")
    words = {"model": plain.model, "drive": plain.drive}
    settings = dict(plain.settings)
    for key, value in (pair.split("=", 1) for pair in filter(None, rest.split(",")) if "=" in pair):
        if key in words:
            words[key] = value
        else:
            settings |= numbers(f"{key}={value}")
    if rest and len(re.findall("=", rest)) != len(rest.split(",")):
        problem = f"configuration {text!r} is not understood"
        raise EngineError("bad_input", problem, "use NAME:KEY=VALUE,KEY=VALUE")
    return Configuration(name, words["model"], words["drive"], settings, plain.options)


def numbers(text: str) -> dict[str, float]:
    """`a=1,b=2` as numbers. Raises EngineError."""
    found: dict[str, float] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise EngineError(
                "bad_input", f"{pair!r} is not understood", "use name=number"
            ) from error
    return found


def seeds_of(text: str) -> list[int]:
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise EngineError("bad_input", f"seeds {text!r} are not understood", "such as 1,2,3")
    return [int(seed) for seed in text.split(",")]


def clips_of(options: argparse.Namespace) -> ClipSet:
    """Raises EngineError."""
    if options.clips is not None:
        return load_folder(options.clips, options.character).subset(ids=options.only)
    return load_set(options.set).subset(options.split, options.language, options.only)


def run_command(options: argparse.Namespace, cache: Path) -> int:
    """Raises EngineError."""
    options.checkpoints = named_checkpoints(options)
    configurations = configurations_of(options)
    if options.ray:
        check_spreadable(configurations)
    check_models(configurations, Folders(cache, options.models, options.checkpoints))
    workers = processes(configurations, options.workers)
    if options.ray and not options.workers:
        workers = 0  # all cores of the cluster
    clips = clips_of(options)
    syncnet = load_syncnet(options.syncnet) if options.syncnet else None
    scorer = scorer_hash(clips.hash, options.models, syncnet.sha256 if syncnet else "")
    wanted = plan(
        clips, configurations, seeds_of(options.seeds), scorer, options.out,
        options.name, not options.no_videos,
    )  # fmt: skip
    tools = Tools(
        str(cache), str(options.models or ""), str(options.syncnet or ""),
        tuple(map(str, options.checkpoints)),
    )  # fmt: skip
    line = ProgressLine()
    with on_cluster(options.ray) if options.ray else nullcontext(do_all) as do:
        folder = RunFolder.open(options.out, wanted)
        try:
            results = run(
                folder, tools, workers, lambda p: line.show(said(p), at_once=True),
                options.again, options.retry_failed, do=do,
            )  # fmt: skip
        except KeyboardInterrupt:
            results = None
        finally:
            line.end()
    if results is None:
        done = len(folder.results())
        print(  # noqa: T201
            f"avatar-qa: stopped with {done} of {len(wanted.jobs)} done; the same command goes on",
            file=sys.stderr,
        )
        return STOPPED
    table = summary(results)
    if options.json:
        print(msgspec.json.encode({"out": str(options.out), **table}).decode())  # noqa: T201
    else:
        print("\n".join(lines_of(table, options.out)))  # noqa: T201
    return 1 if table["failed"] else 0


def said(p: Progress) -> str:
    """One line of progress."""
    value = p.result.value(PRIMARY)
    score = p.result.failed or (f"{value:.2f}" if value is not None else "no score")
    name = f"{p.job.configuration.name} seed {p.job.seed} {p.job.clip}"
    left = f"{p.left_s / 60:.1f} min" if p.left_s > 90 else f"{p.left_s:.0f} s"
    failed = f", {p.failed} failed" if p.failed else ""
    return f"{p.done} of {p.total}{failed}, {p.rate:.1f} a minute, {left} left: {name}: {score}"


def summary(results: list[ClipResult]) -> dict[str, Any]:
    """Means over the scored clips of each configuration, and which clips failed."""
    names = dict.fromkeys(r.configuration for r in results)
    rows = {name: _means([r for r in results if r.configuration == name]) for name in names}
    failed = [
        {"configuration": r.configuration, "seed": r.seed, "clip": r.clip, "why": r.failed}
        for r in results
        if r.failed
    ]
    return {"clips": len(results), "scorer": results[0].scorer, "means": rows, "failed": failed}


def _means(results: list[ClipResult]) -> dict[str, float]:
    means: dict[str, float] = {"clips": len(results)}
    for name in SHOWN:
        values = [v for r in results if (v := r.value(name)) is not None]
        if values:
            middle = np.median(values) if name == "offset" else np.mean(values)
            means[name] = round(float(middle), 4)
    return means


def lines_of(table: dict[str, Any], out: Path) -> list[str]:
    """The summary for a person."""
    lines = [
        f"{name}: " + ", ".join(f"{key} {value:g}" for key, value in means.items())
        for name, means in table["means"].items()
    ]
    lines += [f"failed: {f['configuration']} {f['clip']}: {f['why']}" for f in table["failed"]]
    return [*lines, f"results in {out}"]
