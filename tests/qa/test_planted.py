"""The planted table at small size: two real clips, one drawn face, the faults that fool rulers.

All sizes of all faults on all clips: `avatar-qa validate`.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from engine.errors import EngineError
from engine.qa import validate as planting
from engine.qa.clip_set import load_set
from engine.qa.faults import BY_NAME, FAULTS, Subject, reference
from engine.qa.headline import POWERS
from engine.qa.headline_choice import ranking
from engine.qa.judge import checks_of, rows_of
from engine.qa.lead import lates, median_of
from engine.qa.planted import StillFrames, score_fault
from engine.qa.report import ClipResult, Verdict
from engine.qa.score_clip import Labels, failed_clip
from engine.qa.scores import Truth
from engine.qa.validate import Options, chosen_clips, split_of, truth_of
from tests.qa.conftest import needs_models

PLANTED = (
    "reference", "late +1", "late -1", "late +3", "late -4", "late +8", "frozen shut",
    "frozen open", "another clip", "sine 4 Hz", "swap 100 %", "loudness only",
)  # fmt: skip
SECONDS = 2.6  # of each clip


def begun(truth: Truth) -> Truth:
    """The first seconds of a clip."""
    assert truth.phones is not None
    phones = tuple(p for p in truth.phones if p.end_s <= SECONDS)
    return Truth(phones, truth.pcm[: round(SECONDS * 48_000)])


@pytest.fixture(scope="session")
def subjects() -> list[Subject]:
    clips = [c for c in load_set(verify=False).clips if c.split == "test"]
    clips = sorted(clips, key=lambda c: (c.language != "en", c.samples))[:3]
    truths = [begun(truth_of(clip)) for clip in clips]
    phones = [truth.phones or () for truth in truths]
    return [Subject(truths[i], phones[i + 1], i, moving=False) for i in range(2)]


@pytest.fixture(scope="session")
def results(face, subjects) -> list[ClipResult]:
    still = StillFrames(face)
    return [
        score_fault(BY_NAME[name], subject, face, still, Labels(f"clip{i}", "s", split="test"))
        for i, subject in enumerate(subjects)
        for name in PLANTED
    ]


@needs_models
def test_planted_offsets_are_recovered(results):
    for result in results:
        fault = BY_NAME[result.configuration]
        assert result.failed == ""
        if fault.name.startswith(("late", "reference")):
            assert fault.late is not None
            assert result.value("offset") == pytest.approx(fault.late, abs=0.6), fault.name
            assert result.value("ridge_offset") == pytest.approx(fault.late, abs=1.5), fault.name


@needs_models
def test_every_fault_scores_below_its_reference(results):
    for i in range(2):
        of_clip = {r.configuration: r for r in results if r.clip == f"clip{i}"}
        best = of_clip["reference"].value("headline")
        assert best is not None and best > 0.6
        for name, result in of_clip.items():
            if name != "reference":
                value = result.value("headline")
                assert value is not None and value < best - 0.03, name
        for name in ("frozen shut", "frozen open"):
            assert of_clip[name].value("headline") == 0
            assert of_clip[name].value("offset") is None
            assert of_clip[name].value("ridge_offset") is None


@needs_models
def test_each_trick_is_seen_by_the_score_that_should(results):
    mean = {
        name: {
            s: np.mean([v for r in results if r.configuration == name
                        and (v := r.value(s)) is not None] or [0.0])
            for s in ("bilabial", "bilabial_raw", "open_vowels", "confidence", "dynamics", "r0")
        }
        for name in PLANTED
    }  # fmt: skip
    assert mean["reference"]["bilabial"] > 0.9 and mean["reference"]["r0"] > 0.7
    assert mean["frozen shut"]["bilabial_raw"] == 1
    shut = [r.value("bilabial") for r in results if r.configuration == "frozen shut"]
    assert all(not value for value in shut), "always shut is no evidence: 0 or nothing"
    assert mean["frozen open"]["open_vowels"] == 1 and mean["frozen open"]["dynamics"] < 0.1
    assert mean["loudness only"]["bilabial"] < 0.6 < mean["reference"]["bilabial"]
    assert mean["sine 4 Hz"]["confidence"] < 0.6 * mean["reference"]["confidence"]
    assert mean["late +8"]["confidence"] > 0.7 * mean["reference"]["confidence"]


@needs_models
def test_still_frames_are_drawn_once_and_alike(face, subjects):
    """Cached frames give what drawing in order gives."""
    tokens = reference(subjects[0])[:20]
    still = StillFrames(face)
    twice = still.measured(np.concatenate([tokens, tokens]))
    assert (twice.landmarks[:20] == twice.landmarks[20:]).all()
    assert len(twice) == 40 and (twice.change[1:] >= 0).all()
    assert still.measured(tokens[:1].repeat(3, 0)).change.tolist() == [0, 0, 0]


def test_faults_change_the_mouth_alone(subjects):
    subject = Subject(subjects[0].truth, subjects[0].other, 3, moving=True)
    best = reference(subject)
    for fault in FAULTS:
        tokens = fault.plant(subject)
        assert tokens.shape == best.shape and np.isfinite(tokens).all(), fault.name
        if fault.name not in ("reference",) and not fault.name.startswith(("swap", "jitter")):
            assert (tokens[:, 17:] == best[:, 17:]).all(), fault.name
        assert (fault.plant(subject) == tokens).all(), f"{fault.name} is not repeatable"
    late = BY_NAME["late +2"].plant(subject)
    assert (late[2:, :17] == best[:-2, :17]).all()


def made(values: dict[str, float], n: int = 6) -> list[ClipResult]:
    """Results whose headline is as told; offsets as planted."""
    from engine.qa.limits import make_score

    rng = np.random.default_rng(0)
    return [
        ClipResult(
            f"clip{i}", "s", configuration=name, split="test",
            scores=[
                make_score("headline", value + 0.01 * rng.normal()),
                make_score("offset", BY_NAME[name].late),
                make_score("ridge_offset", BY_NAME[name].late),
                make_score("bilabial", value),
            ],
        )
        for name, value in values.items()
        for i in range(n)
    ]  # fmt: skip


GOOD = {"reference": 0.9, "late +1": 0.7, "late +2": 0.4, "frozen shut": 0.0, "loudness only": 0.2}


def test_a_ruler_that_measures_passes():
    checks = checks_of(made(GOOD), {})
    assert all(check.passed for check in checks), [c for c in checks if not c.passed]
    rows = rows_of(made(GOOD), "test", {}, "still")
    assert [r.verdict for r in rows] == [Verdict.SAME] + [Verdict.WORSE] * 4


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"late +1": 0.89}, "late +1 is worse"),
        ({"late +2": 0.75}, "graver faults score lower"),
        ({"frozen shut": 0.3}, "frozen mouths score nothing"),
        ({"loudness only": 0.9}, "loudness only lacks closures"),
    ],
)
def test_a_ruler_that_does_not_fails(changed, failing):
    failed = {c.name for c in checks_of(made({**GOOD, **changed}), {}) if not c.passed}
    assert failing in failed


@needs_models
def test_the_reference_reads_zero_in_pixels(face):
    """Whole clips of the tune split, with moving heads."""
    offsets, ridges = [], []
    for i, clip in enumerate(load_set(verify=False).clips):
        if clip.id in ("en-allison-dir-nomore", "es-allison-vm-undelete", "en-flite-rms-0"):
            subject = Subject(truth_of(clip), (), i, moving=True)
            labels = Labels(clip.id, "s")
            result = score_fault(BY_NAME["reference"], subject, face, StillFrames(face), labels)
            offsets.append(result.value("offset"))
            ridges.append(result.value("ridge_offset"))
    assert len(offsets) == 3
    assert abs(np.median(offsets)) < 0.3 and abs(np.median(ridges)) < 0.3, (offsets, ridges)


def ridge_wrong(clips: int, of: int) -> dict[str, tuple[bool, bool]]:
    """(passed, required) of both checks of the second opinion, which misreads `clips` of `of`."""
    results = [
        msgspec.structs.replace(
            r, scores=[msgspec.structs.replace(s, value=s.value - 2.0)
                       if s.name == "ridge_offset" and s.value is not None
                       and int(r.clip[4:]) < clips else s for s in r.scores])
        for r in made(GOOD, of)
    ]  # fmt: skip
    checks = [c for c in checks_of(results, {}) if c.name.startswith("second opinion")]
    return {c.name.split()[2].strip(","): (c.passed, c.required) for c in checks}


def test_second_opinion_is_asked_singly_and_pooled():
    assert ridge_wrong(0, 12) == {"pooled": (True, True), "finds": (True, True)}
    assert ridge_wrong(3, 12) == {"pooled": (True, True), "finds": (False, True)}
    assert ridge_wrong(7, 12) == {"pooled": (False, True), "finds": (False, True)}
    assert ridge_wrong(2, 6) == {"pooled": (True, True), "finds": (False, False)}, "few clips"


@needs_models
def test_the_reference_reads_zero():
    """LEAD_S fits engine/motion as it is. If not: `python -m engine.qa.lead` says the new one."""
    found = lates()
    phones, sound = median_of(found)
    assert len(found) >= 10 and abs(phones) < 0.3 and abs(sound) < 0.3, (phones, sound)


def test_wrong_offsets_and_failed_clips_fail():
    wrong = [
        msgspec.structs.replace(
            r, scores=[msgspec.structs.replace(s, value=5.0) if s.name == "offset" else s
                       for s in r.scores])
        for r in made(GOOD)
    ]  # fmt: skip
    names = {c.name for c in checks_of(wrong, {}) if not c.passed}
    assert "planted offsets found within a frame" in names
    broken = [*made(GOOD)[1:], failed_clip(Labels("clip0", "s", "reference", split="test"), "why")]
    names = {c.name for c in checks_of(broken, {}) if not c.passed}
    assert "every planted clip was scored" in names
    assert not checks_of([], {})[0].passed


def test_headline_choice_prefers_what_exposes_faults():
    rng = np.random.default_rng(2)
    wanted = np.abs(np.sin(np.arange(96) / 3)) + 0.1 * rng.random(96)
    from engine.qa.limits import make_score
    from engine.qa.report import Tracks

    def result(name: str, seen: np.ndarray, bilabial: float) -> ClipResult:
        tracks = Tracks(seen.tolist(), wanted.tolist(), [], 0.0)
        scores = [
            make_score("bilabial", bilabial), make_score("open_vowels", 1.0),
            make_score("dynamics", 1.0),
        ]  # fmt: skip
        return ClipResult("a", "s", configuration=name, split="tune", scores=scores, tracks=tracks)

    rows = ranking([
        result("reference", wanted, 1.0), result("late +3", np.roll(wanted, 5), 1.0),
        result("loudness only", wanted, 0.0),
    ])  # fmt: skip
    assert rows[0][1] == 1.0 and rows[0][0]["fit"] > 0 and rows[0][0]["bilabial"] > 0
    assert set(rows[0][0]) == set(POWERS) and rows[-1][1] == 0.0


def test_quick_takes_one_clip_a_test_character():
    clip_set = load_set(verify=False)
    clips = chosen_clips(clip_set, Options(quick=True))
    assert len({c.character for c in clips}) == len(clips) >= 3
    assert all(split_of(c, clip_set) == "test" for c in clips)
    with pytest.raises(EngineError, match="1 clips of the test split"):
        chosen_clips(clip_set, Options(clips=(clips[0].id,)))


@needs_models
def test_validate_resumes_and_says_what_is_wrong(tmp_path, monkeypatch):
    calls: list[str] = []

    def planted(task: planting.Task) -> int:
        calls.append(task.clip)
        for name in task.faults:
            result = made({name: GOOD.get(name, 0.9)}, 1)[0]
            planting._write(task.folder, task.clip, name, msgspec.structs.replace(
                result, clip=task.clip))  # fmt: skip
        return len(task.faults)

    monkeypatch.setattr(planting, "plant_clip", planted)
    monkeypatch.setattr(planting, "scorer_hash", lambda *_: "s")
    options = Options(quick=True, out=tmp_path, workers=1, faults=tuple(GOOD))
    first = planting.validate(options)
    assert first.passed and len(calls) == 3
    assert planting.validate(options) == first and len(calls) == 3
    damaged = next(tmp_path.rglob("reference.json"))
    damaged.write_text("{")
    assert planting.validate(options) == first and len(calls) == 4
    with pytest.raises(EngineError, match="no fault is called 'sneeze'"):
        planting.validate(Options(faults=("sneeze",)))
