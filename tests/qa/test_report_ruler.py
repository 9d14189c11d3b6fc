"""Why believe this ruler? Which validation is taken, what is said of it, and where it is shown."""

from __future__ import annotations

import json

import msgspec
import pytest

from engine.errors import EngineError
from engine.qa import ruler_command
from engine.qa.__main__ import run as avatar_qa
from engine.qa.clip_set import ASSETS_QA, load_set
from engine.qa.faults import FAULTS
from engine.qa.jobs import FORMAT, Configuration, Job, RunFile
from engine.qa.limits import make_score
from engine.qa.page import Page, html
from engine.qa.report import Check, ClipResult, PlantedRow, Validation, Verdict
from engine.qa.report_ruler import Ruler, Standing, choose, fault_words, headline
from engine.qa.ruler_command import ruler_of
from engine.qa.run_folder import RunFolder
from engine.qa.scorer import scorer_hash


def row(fault: str, verdict: Verdict, late: float | None = 0.0, split: str = "test") -> PlantedRow:
    found = None if late is None else late + 0.1
    within = 0 if late is None else 9
    return PlantedRow(fault, split, 9, late, found, within, found, within, {"headline": 0.4}, 1.0,
                      verdict)  # fmt: skip


def validation(scorer: str, passed: bool = True) -> Validation:
    rows = [
        row("reference", Verdict.SAME), row("late +2", Verdict.WORSE, 2.0),
        row("frozen shut", Verdict.UNDECIDED, None), row("late +2", Verdict.SAME, 2.0, "tune"),
    ]  # fmt: skip
    checks = [
        Check("A/A", True, "the same"), Check("late <+2>", passed, "1 of 9"),
        Check("beside", False, "not needed", required=False),
    ]  # fmt: skip
    return Validation(scorer, False, rows, checks, [], ["no real speakers"])


def write(path, found: Validation) -> None:
    path.write_bytes(msgspec.json.encode(found))


@pytest.fixture
def run_folder(tmp_path):
    """A run of one clip of the shipped set by this very ruler."""
    clips = load_set(ASSETS_QA, verify=False)
    scorer = scorer_hash(clips.hash)
    job = Job("a", Configuration("portrait"), 1, scorer, "a.flac", "mira", "mira.avatar")
    made = RunFolder.open(
        tmp_path / "run", RunFile(FORMAT, "r", clips.version, clips.hash, scorer, {}, [job])
    )
    made.store(job, ClipResult("a", scorer, configuration="portrait", seed=1,
                               scores=[make_score("headline", 0.8)]))  # fmt: skip
    return made


def test_the_best_validation_is_taken(tmp_path):
    for name, scorer in (("old", "x"), ("same", "s"), ("set", "c")):
        write(tmp_path / name, validation(scorer))
    (tmp_path / "broken").write_text("{")
    old, same, code = (tmp_path / n for n in ("old", "same", "set"))
    places = [tmp_path / "none", tmp_path / "broken", old, code, same]
    assert choose(places, ["s"], ["c"]).standing is Standing.SAME
    assert choose(places, ["s"], ["c"]).source == str(same)
    assert choose(places, ["t"], ["c"]).standing is Standing.CLIPS
    other = choose(places, ["t"])
    assert other.standing is Standing.OTHER and "another ruler (x)" in other.said
    nothing = choose(places[:2], ["s"])
    assert nothing.standing is Standing.NONE and "avatar-qa validate" in nothing.said
    assert not nothing.measures


def test_a_run_finds_the_shipped_one_by_its_hash(run_folder, tmp_path, monkeypatch, capsys):
    shipped = tmp_path / "lipsync-validation.json"
    monkeypatch.setattr(ruler_command, "SHIPPED", shipped)
    assert ruler_of(run_folder.path).standing is Standing.NONE
    write(shipped, validation(run_folder.run.scorer))
    assert ruler_of(run_folder.path).standing is Standing.SAME
    assert ruler_of(None).standing is Standing.SAME, "this version of the tool, without a run"
    assert avatar_qa(["ruler", str(run_folder.path)], {}) == 0
    said = capsys.readouterr().out
    assert said.startswith("The ruler measures: it passes all of 2 checks.")
    assert "mouth 2 frames late" in said and "missed: undecided" in said
    write(shipped, validation("0" * 16))
    assert ruler_of(run_folder.path).standing is Standing.OTHER
    assert avatar_qa(["ruler", "--json"], {}) == 1
    assert json.loads(capsys.readouterr().out)["standing"] == "another ruler"


def test_a_run_of_ones_own_clips_has_the_same_code(tmp_path, monkeypatch):
    """The set is part of the hash: nobody validates on the very clips of a person."""
    shipped = tmp_path / "lipsync-validation.json"
    monkeypatch.setattr(ruler_command, "SHIPPED", shipped)
    write(shipped, validation(scorer_hash(load_set(ASSETS_QA, verify=False).hash)))
    own = "ab" * 32
    for scorer, standing in ((scorer_hash(own), Standing.CLIPS), ("f" * 16, Standing.OTHER)):
        folder = tmp_path / scorer
        RunFolder.open(folder, RunFile(FORMAT, "r", "user", own, scorer, {}, []))
        assert ruler_of(folder).standing is standing


def test_the_runs_own_and_a_given_one(run_folder, tmp_path):
    write(run_folder.path / "validation.json", validation(run_folder.run.scorer, passed=False))
    found = ruler_of(run_folder.path)
    assert found.source.endswith("run/validation.json") and not found.measures
    assert headline(found.validation) == "The ruler falls short in 1 of 2 checks."
    write(tmp_path / "given.json", validation("x"))
    assert ruler_of(run_folder.path, tmp_path / "given.json").standing is Standing.OTHER
    with pytest.raises(EngineError, match="holds no validation"):
        ruler_of(run_folder.path, tmp_path / "none.json")


def test_the_report_says_why(run_folder):
    write(run_folder.path / "validation.json", validation(run_folder.run.scorer, passed=False))
    assert avatar_qa(["report", str(run_folder.path)], {}) == 0
    text = (run_folder.path / "report.html").read_text()
    assert text.index('href="#ruler"') < text.index("All clips") < text.index('id="ruler"')
    assert "Measured with this very ruler." in text
    assert "falls short in 1 of 2 checks" in text and "late &lt;+2&gt;" in text
    ruler = text[text.index('id="ruler"') :]
    assert ruler.index("fell short") < ruler.index("fell short, does not decide")
    assert ruler.index("chose no threshold") < ruler.index("on which thresholds were chosen")
    assert ruler.index("late &lt;+2&gt;") < ruler.index("1 check passed")


def test_another_ruler_is_never_called_this_one():
    page = html(Page([], "1", "f" * 64, ruler=Ruler(Standing.OTHER, "x", validation("y"))))
    assert "But that was another ruler." in page and "Measured with another ruler (y)" in page
    assert "answer good" not in page
    assert "was not checked" in html(Page([], "1", "f" * 64))


def test_every_fault_has_words():
    said = {fault.name: fault_words(fault.name) for fault in FAULTS}
    assert len(set(said.values())) == len(said)
    assert not [name for name, text in said.items() if name == text]
    assert said["late -1"] == "mouth 1 frame early"


def test_one_configurations_report_does_not_replace_the_whole_runs(tmp_path):
    jobs = [Job("a", Configuration(n), 1, "s", "a.flac", "mira", "m.avatar") for n in ("x", "y")]
    made = RunFolder.open(tmp_path / "run", RunFile(FORMAT, "r", "1", "h", "s", {}, jobs))
    for job in jobs:
        made.store(job, ClipResult("a", "s", configuration=job.configuration.name, seed=1))
    run = str(made.path)
    assert avatar_qa(["report", run], {}) == 0
    both = (made.path / "results.csv").read_bytes()
    assert avatar_qa(["report", f"{run}:x"], {}) == 0
    assert (made.path / "report.html").is_file() and (made.path / "report x.html").is_file()
    assert (made.path / "results.csv").read_bytes() == both
    out = tmp_path / "elsewhere" / "page.html"
    assert avatar_qa(["report", f"{run}:x", "--out", str(out)], {}) == 0
    assert len((out.parent / "results.csv").read_text().splitlines()) == 2
