"""`avatar-qa validate`: plants faults, measures pixels, and says whether the ruler can be believed.

Resumable: each clip with each fault is one small file, and what is there with the same scorer is
not done again. Uses all cores. `--quick` is one clip a test character with still heads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from engine.audio_file import read_whole
from engine.errors import EngineError
from engine.qa.clip_set import ASSETS_QA, Clip, ClipSet, load_set
from engine.qa.faults import BY_NAME, FAULTS, Subject
from engine.qa.judge import JUDGED, checks_of, rows_of
from engine.qa.planted import Face, StillFrames, score_fault
from engine.qa.real_speakers import clips_of, real_checks, score_real
from engine.qa.report import ClipResult, Validation
from engine.qa.report_ruler import REFERENCE
from engine.qa.score_clip import Labels, failed_clip
from engine.qa.scorer import scorer_hash
from engine.qa.scores import Truth
from engine.qa.statistics import LEAST_CLIPS

QUICK_LEAST_BILABIALS = 3
NOT_QUICK = ("swap 50 %", "amplitude 30 %")  # between others, and costly: a fifth of the time
Progress = Callable[[int, int, str], None]  # done, of, what


@dataclass(frozen=True, slots=True)
class Options:
    """`out` None keeps nothing; `workers` 0 is one a core; `faults` empty is all of them; `still`
    heads make equal mouths equal frames: 2.5 times cheaper, and easier for the tracker."""

    quick: bool = False
    still: bool = False
    out: Path | None = None
    set_folder: Path = ASSETS_QA
    real: Path | None = None
    models: Path | None = None
    workers: int = 0
    faults: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()

    @property
    def heads(self) -> str:
        return "still" if self.quick or self.still else "moving"


@dataclass(frozen=True, slots=True)
class Task:
    """One clip, the faults that are still to be planted in it, and where results go."""

    clip: str
    other: str  # whose phones "another clip" takes
    faults: tuple[str, ...]
    folder: Path
    options: Options
    scorer: str
    seed: int


def validate(options: Options, progress: Progress = lambda done, of, what: None) -> Validation:
    """Raises EngineError("missing_asset", "bad_config", "bad_input")."""
    clip_set = load_set(options.set_folder)
    scorer = scorer_hash(clip_set.hash, options.models)
    chosen = chosen_clips(clip_set, options)
    names = options.faults or tuple(
        fault.name for fault in FAULTS if not (options.quick and fault.name in NOT_QUICK)
    )
    if unknown := sorted(set(names) - BY_NAME.keys()):
        raise EngineError(
            "bad_input", f"no fault is called {unknown[0]!r}", f"of {', '.join(BY_NAME)}"
        )
    with TemporaryDirectory() as temporary:
        folder = (options.out or Path(temporary)) / f"planted-{scorer}-{options.heads}"
        tasks = tasks_of(clip_set, chosen, names, folder, options, scorer)
        real = clips_of(options.real) if not options.quick else []
        total = len(chosen) * len(names) + len(real)
        done = total - len(real) - sum(len(t.faults) for t in tasks)
        for count, what in _worked(tasks, options):
            done += count
            progress(done, total, what)
        results = [r for c in chosen for n in names if (r := _read(folder, c.id, n)) is not None]
    heard = []
    for path in real:
        heard.append(score_real(path, scorer, options.models))
        progress(done + len(heard), total, path.stem)
    return judged(results, heard, clip_set, options, scorer)


def judged(
    results: Sequence[ClipResult], heard: list[ClipResult], clip_set: ClipSet, options: Options,
    scorer: str,
) -> Validation:  # fmt: skip
    rows = [
        row
        for split in ("test", "mixed", "tune")
        for row in rows_of(results, split, clip_set.margins, options.heads)
    ]
    checks = checks_of(results, clip_set.margins, JUDGED)
    notes = []
    if heard and options.real is not None:
        checks += real_checks(heard, options.real)
    elif not options.quick:
        notes.append("no folder of real speakers was given: that part was not checked")
    if options.clips or options.faults:
        faults = {r.configuration for r in results} - {REFERENCE}
        notes.append(
            f"a part only, {len(faults)} of {len(FAULTS) - 1} faults in "
            f"{len({r.clip for r in results})} clips: the full run decides"
        )
    elif options.quick:
        notes.append(
            f"quick: {len({r.clip for r in results})} clips, one a test character, heads still, "
            f"without {' and '.join(NOT_QUICK)}; the full run decides"
        )
    return Validation(scorer, options.quick, rows, checks, heard, notes)


def chosen_clips(clip_set: ClipSet, options: Options) -> list[Clip]:
    """Clips with phones; for quick the shortest usable one of each test character."""
    clips = [c for c in clip_set.clips if c.alignment_file is not None]
    if options.clips:
        clips = [c for c in clip_set.subset(ids=options.clips).clips if c.alignment_file]
    elif options.quick:
        clips = _quick(clips, clip_set)
    judged_clips = sum(c.split == JUDGED for c in clips)
    if judged_clips < LEAST_CLIPS:
        raise EngineError(
            "bad_input", f"{judged_clips} clips of the {JUDGED} split, {LEAST_CLIPS} are needed",
            "take a larger set",
        )  # fmt: skip
    return clips


def _quick(clips: list[Clip], clip_set: ClipSet) -> list[Clip]:
    found: dict[str, Clip] = {}
    for clip in sorted(clips, key=lambda c: (c.samples, c.id)):
        if clip.split == JUDGED and clip_set.characters[clip.character].split == JUDGED:
            aligned = clip.alignment()
            bilabials = sum(n in ("P", "B", "M") for n in aligned.names) if aligned else 0
            if bilabials >= QUICK_LEAST_BILABIALS:
                found.setdefault(clip.character, clip)
    return list(found.values())


def tasks_of(
    clip_set: ClipSet, chosen: list[Clip], names: tuple[str, ...], folder: Path, options: Options,
    scorer: str,
) -> list[Task]:  # fmt: skip
    """The split that decides first; clips of one character in a row: workers prepare few faces."""
    order = {clip.id: i for i, clip in enumerate(clip_set.clips)}
    tasks = []
    for i, clip in enumerate(chosen):
        missing = tuple(n for n in names if _read(folder, clip.id, n) is None)
        other = chosen[(i + 1) % len(chosen)]
        tasks.append(Task(clip.id, other.id, missing, folder, options, scorer, order[clip.id]))
    rank = {clip.id: (clip.split != JUDGED, clip.character, clip.id) for clip in chosen}
    return sorted((t for t in tasks if t.faults), key=lambda t: rank[t.clip])


def _worked(tasks: list[Task], options: Options) -> Iterator[tuple[int, str]]:
    """(faults planted, clip) as clips are done."""
    workers = min(options.workers or os.cpu_count() or 1, max(1, len(tasks)))
    if workers == 1:
        for task in tasks:
            yield plant_clip(task), task.clip
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_end_with_parent) as pool:
        waiting = {pool.submit(plant_clip, task): task for task in tasks}
        for future in as_completed(waiting):
            yield future.result(), waiting[future].clip


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def plant_clip(task: Task) -> int:
    """Runs in a worker; returns how many faults were planted."""
    import cv2

    cv2.setNumThreads(1)
    options = task.options
    clip_set = _set(options.set_folder)
    by_id = {clip.id: clip for clip in clip_set.clips}
    clip = by_id[task.clip]
    face = _face(options.set_folder, clip.character, options.models)
    still = StillFrames(face, options.models)
    subject = Subject(
        truth_of(clip),
        truth_of(by_id[task.other]).phones or (),
        task.seed,
        options.heads == "moving",
    )
    labels = Labels(clip.id, task.scorer, language=clip.language, split=split_of(clip, clip_set))
    for name in task.faults:
        try:
            result = score_fault(BY_NAME[name], subject, face, still, labels, options.models)
        except EngineError as error:
            result = failed_clip(labels, str(error))
            result = msgspec.structs.replace(result, configuration=name)
        _write(task.folder, clip.id, name, result)
    return len(task.faults)


def split_of(clip: Clip, clip_set: ClipSet) -> str:
    """ "test" where neither clip nor character chose anything, "tune" where both might have."""
    return clip.split if clip.split == clip_set.characters[clip.character].split else "mixed"


def truth_of(clip: Clip) -> Truth:
    """What the set knows of a clip."""
    aligned = clip.alignment()
    phones = None if aligned is None else tuple(aligned.phones)
    return Truth(phones, read_whole(clip.audio), clip.no_phones or "no transcript")


@lru_cache(maxsize=1)
def _set(folder: Path) -> ClipSet:
    return load_set(folder, verify=False)


@lru_cache(maxsize=2)
def _face(set_folder: Path, character: str, models: Path | None) -> Face:
    from engine.character import load_character
    from engine.portrait.renderer import PortraitRenderer
    from engine.protocol.character_file import read_character
    from engine.qa.sweep import gauge_of_renderer

    entry = _set(set_folder).characters[character]
    spec, picture = read_character(entry.file)
    canvas = load_character(picture, spec, models=models).canvas
    renderer = PortraitRenderer(canvas, None, lambda fraction, what: None)
    return Face(character, entry.kind, renderer, gauge_of_renderer(renderer, models))


def _path(folder: Path, clip: str, fault: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "+-" else "_" for c in fault)
    return folder / clip / f"{safe}.json"


def _read(folder: Path, clip: str, fault: str) -> ClipResult | None:
    """None also where a file is damaged: it is made again."""
    try:
        return msgspec.json.decode(_path(folder, clip, fault).read_bytes(), type=ClipResult)
    except (OSError, ValueError):
        return None


def _write(folder: Path, clip: str, fault: str, result: ClipResult) -> None:
    path = _path(folder, clip, fault)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(msgspec.json.encode(result))
    part.replace(path)


def said(found: Validation) -> list[str]:
    """Lines for a terminal: checks first, then the table."""
    lines = [f"{'ok  ' if c.passed else 'FAIL'} {c.name}: {c.said}" for c in found.checks]
    lines += found.notes
    lines.append(f"{'fault':<16}{'split':<6}{'n':>3}{'late':>7}{'ridge':>7}  " + _HEADS)
    for row in found.rows:
        late, ridge = (f"{v:+.2f}" if v is not None else "-" for v in
                       (row.offset_median, row.ridge_median))  # fmt: skip
        means = "".join(
            f"{row.means[name]:>7.2f}" if name in row.means else f"{'-':>7}" for name in _SHOWN
        )
        lines.append(
            f"{row.fault:<16}{row.split:<6}{row.clips:>3}{late:>7}{ridge:>7}{means}  "
            f"{row.verdict.value}"
        )
    return lines


_SHOWN = ("headline", "r0", "confidence", "bilabial", "open_vowels", "rounding", "dynamics")
_HEADS = "  head.     r0  conf.   bil.   open  round   dyn."
