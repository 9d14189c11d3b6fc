"""The models page: what it shows of each model, what it asks of the engine and of a person."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox

from engine.errors import EngineError
from engine.protocol import messages as pm
from studio import dialogs, model_words, theme
from studio.models_view import NO_GPU, ModelsView
from studio.settings import StudioSettings
from tests.studio_ui import model_rows as rows


@pytest.fixture
def page(app):
    """The panel, shown, with every kind of model listed."""
    app.flow.state.update_session(model="portrait")
    app.window.action("panel_models").trigger()
    QApplication.processEvents()
    app.flow.link.answer(pm.ListModels, rows.listing(*rows.ALL))
    return app


def pick(app, name):
    panel = app.window.models
    index = [row.id for row in panel.list.rows()].index(name)
    panel.list.setCurrentIndex(panel.list.model().index(index, 0))
    QApplication.processEvents()
    return panel.detail


def yes(monkeypatch, asked=None):
    for question in ("ask_licence", "ask_noise"):

        def answer(_parent, *words, question=question):
            if asked is not None:
                asked.append((question, *words))
            return True

        monkeypatch.setattr(dialogs, question, answer)  # fmt: skip


# --- the list ---
def test_models_are_listed_only_when_somebody_looks(app):
    assert not app.flow.link.asked(pm.ListModels)
    for _ in range(3):
        app.window.action("panel_models").trigger()
    assert app.window.models.isVisible() and len(app.flow.link.asked(pm.ListModels)) == 1
    assert "Looking for models" in app.window.models.headline.text()


def test_portrait_first_noise_last_and_a_badge_for_each(page):
    listed = page.window.models.list.rows()
    assert [r.id for r in listed] == [
        "portrait", "forcing", "wan", "s2v", "torn", "tiny", "avatar-57b"
    ]  # fmt: skip
    assert [(r.badge, r.tone) for r in listed] == [
        ("on stage", "live"), ("ready", "soft"), ("ready", "soft"), ("incomplete", "warning"),
        ("refused", "danger"), ("noise", "faint"), ("too large", "warning"),
    ]  # fmt: skip
    assert listed[1].mark == "non-commercial" and not listed[2].mark
    assert listed[5].line == "random weights: noise, not a face"


def test_the_list_paints_badges_in_their_colours(page):
    image = page.window.models.list.grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(60)}
    assert theme.COLORS["live"] in seen and theme.COLORS["tint"] in seen


def test_arrow_keys_move_and_return_uses(page, monkeypatch):
    asked = []
    yes(monkeypatch, asked)
    models = page.window.models
    models.list.setFocus()
    QTest.keyClick(models.list, Qt.Key.Key_Down)
    assert models.chosen == "forcing" and models.detail.name.text() == "forcing"
    QTest.keyClick(models.list, Qt.Key.Key_Return)
    assert asked == [("ask_licence", "forcing", rows.NC)]
    assert page.flow.link.sent[-1] == pm.LoadModel(model="forcing")


# --- one model ---
def test_facts_of_an_installed_model(page):
    detail = pick(page, "forcing")
    assert detail.layout_line.text() == "Self-Forcing generator_ema, 2.8 GB"
    assert (detail.path.text(), detail.disk.text()) == ("/m/forcing", "2.8 GB on disk")
    assert detail.needs.text() == "9.0 GiB on one GPU, 76.0 GiB are free · NVIDIA H200"
    assert (detail.licence.text(), detail.licence.property("tone")) == (rows.NC, "warning")
    assert detail.use.isEnabled() and detail.load.isEnabled() and detail.measure.isEnabled()
    assert pick(page, "wan").licence.property("tone") == ""
    assert "Not distilled" in detail.note.text.text()


@pytest.mark.parametrize(
    ("name", "words", "tone"),
    [
        ("s2v", "The sound encoder is missing: put wav2vec2/ into /m/s2v", "warning"),
        ("torn", "torn.pt: 30 tensors are missing: get it", "danger"),
        ("tiny", "noise, not a face", "info"),
        ("avatar-57b", "It needs more memory than is free", "warning"),
    ],
)
def test_what_keeps_it_from_running_is_said_with_the_remedy(page, name, words, tone):
    detail = pick(page, name)
    assert words in detail.note.text.text() and detail.note.property("tone") == tone
    usable = name in ("tiny", "avatar-57b")  # a GPU refuses what it cannot hold, in words
    assert detail.use.isEnabled() == detail.measure.isEnabled() == usable


def test_without_a_gpu_nothing_is_begun_that_would_stop_the_machine(page):
    page.models.refresh()
    page.flow.link.answer(pm.ListModels, rows.listing(rows.PORTRAIT, rows.HUGE, device=NO_GPU))
    detail = pick(page, "avatar-57b")
    assert not detail.use.isEnabled() and not detail.measure.isEnabled()
    assert "would come to a halt" in detail.use.toolTip()


@pytest.mark.parametrize(
    ("needs", "free", "tones"),
    [(50, 100, {"live": 0.5, "hover": 0.5}), (100, 60, {"warning": 0.6, "danger": 0.4})],
)
def test_the_bar_shows_need_against_free_memory(page, needs, free, tones):
    bar = pick(page, "forcing").bar
    bar.resize(204, 14)
    bar.show_need(needs, free)
    image = bar.grab().toImage()
    line = [image.pixelColor(x, 7).name() for x in range(4, 200)]
    for tone, share in tones.items():
        assert line.count(theme.COLORS[tone]) / len(line) == pytest.approx(share, abs=0.03), tone


# --- asking first ---
def test_a_non_commercial_licence_is_said_before_anything_is_read(page, monkeypatch):
    seen = []

    def refuse(box):
        seen.append(f"{box.text()} {box.informativeText()}")
        assert box.defaultButton().text() == "Cancel"
        box.defaultButton().click()

    monkeypatch.setattr(QMessageBox, "exec", refuse)
    detail = pick(page, "forcing")
    for button in (detail.use, detail.load, detail.measure):
        button.click()
    assert len(seen) == 3 and all(rows.NC in text for text in seen)
    assert not page.flow.link.asked(pm.LoadModel) and not page.flow.link.asked(pm.BenchModel)
    pick(page, "wan").load.click()
    assert len(seen) == 3 and page.flow.link.asked(pm.LoadModel) == [pm.LoadModel(model="wan")]


def test_a_licence_is_asked_once_a_run(page, monkeypatch):
    asked = []
    yes(monkeypatch, asked)
    detail = pick(page, "forcing")
    detail.load.click()
    page.flow.link.answer(pm.LoadModel, EngineError("out_of_memory", "full", "close something"))
    detail.load.click()
    assert len(asked) == 1 and len(page.flow.link.asked(pm.LoadModel)) == 2


def test_noise_needs_a_choice_and_is_for_this_run_only(page, monkeypatch):
    monkeypatch.setattr(dialogs, "ask_noise", lambda *_: False)
    detail = pick(page, "tiny")
    detail.use.click()
    assert not page.flow.called("set_model")
    yes(monkeypatch)
    detail.use.click()
    assert page.flow.called("set_model") == [("tiny", True)]


# --- loading ---
def test_loading_shows_progress_is_cancelled_and_says_so(page, monkeypatch):
    yes(monkeypatch)
    detail, link = pick(page, "forcing"), page.flow.link
    detail.load.click()
    link.progress(pm.LoadModel, 0.42, "reading model.pt")
    assert detail.busy.isVisible() and detail.progress.value() == 420
    assert detail.progress_text.text() == "Loading forcing: reading model.pt"
    assert not detail.use.isEnabled() and "wait for it" in detail.use.toolTip()
    number = link.sent.index(pm.LoadModel(model="forcing")) + 1
    detail.cancel.click()
    assert link.sent[-1] == pm.Cancel(request=number)
    link.answer(pm.LoadModel, EngineError("cancelled", "cancelled"))
    assert not detail.busy.isVisible() and detail.note.text.text() == "Cancelled"
    assert detail.load.isEnabled()


def test_a_loaded_model_can_be_unloaded_and_a_refusal_stays_in_place(page, monkeypatch):
    yes(monkeypatch)
    detail, link = pick(page, "forcing"), page.flow.link
    detail.load.click()
    link.answer(pm.LoadModel, EngineError("out_of_memory", "the GPU is full", "close something"))
    assert detail.note.text.text() == "The GPU is full: close something"
    assert detail.note.property("tone") == "danger"
    detail.load.click()
    link.answer(pm.LoadModel, rows.loaded("forcing"))
    loaded = msgspec.structs.replace(rows.FORCING, loaded=True)
    link.answer(pm.ListModels, rows.listing(rows.PORTRAIT, loaded))
    assert "Loaded in 3.2 s, 1.60 GB" in detail.note.text.text() and detail.load.text() == "Unload"
    detail.load.click()
    assert link.sent[-1] == pm.UnloadModel(model="forcing")


def test_an_engine_that_dies_under_a_load_leaves_no_endless_bar(page, monkeypatch):
    yes(monkeypatch)
    detail = pick(page, "wan")
    detail.load.click()
    page.flow.state.update_engine(link="recovering")
    assert not detail.busy.isVisible() and not detail.use.isEnabled()
    before = len(page.flow.link.asked(pm.ListModels))
    page.flow.state.update_engine(link="ready")
    assert len(page.flow.link.asked(pm.ListModels)) == before + 1 and detail.use.isEnabled()


# --- on stage ---
def test_use_reads_first_then_opens_then_offers_the_way_back(page, monkeypatch):
    yes(monkeypatch)
    pick(page, "wan").use.click()
    assert page.flow.link.sent[-1] == pm.LoadModel(model="wan") and not page.flow.called(
        "set_model"
    )
    page.flow.link.answer(pm.LoadModel, pm.ModelLoaded(
        model="wan", layout="", licence="", bytes=1, load_ms=1.0))  # fmt: skip
    assert page.flow.called("set_model") == [("wan", False)]
    assert page.flow.state.character.busy, "the character goes along, and its progress is shown"
    spec = page.flow.state.character.spec
    page.flow.open_character(spec, page.flow.state.character.picture)
    assert page.window.toast.text.text() == "wan is on stage"
    page.window.toast.action.click()
    assert page.flow.called("set_model")[-1] == ("portrait", False)


def test_a_model_that_cannot_be_opened_gives_way_to_the_one_before(page, monkeypatch):
    yes(monkeypatch)
    detail = pick(page, "tiny")
    detail.use.click()
    page.flow.talk.failed.emit(EngineError("out_of_memory", "no room", "use a smaller model"))
    assert page.flow.called("set_model") == [("tiny", True), ("portrait", False)]
    assert detail.note.text.text() == "No room: use a smaller model" and not detail.busy.isVisible()


def test_on_several_gpus_the_session_reads_the_model(page, monkeypatch):
    yes(monkeypatch)
    pick(page, "wan").use.click()
    page.flow.link.answer(pm.LoadModel, EngineError("not_ready", "read when its session opens"))
    assert page.flow.called("set_model") == [("wan", False)]


# --- measuring ---
def test_a_measurement_is_shown_with_its_date_and_kept(page, monkeypatch):
    yes(monkeypatch)
    detail = pick(page, "forcing")
    detail.measure.click()
    assert page.flow.link.sent[-1] == pm.BenchModel(model="forcing", seconds=10.0)
    page.flow.link.answer(pm.BenchModel, rows.benched())
    assert detail.speed.text() == "21.5 frames a second" and detail.speed.isVisible()
    for words in ("NVIDIA H200", "after 1.2 s", "denoise 310 ms", "11.0 GiB", "with portrait"):
        assert words in detail.circumstances.text()
    again = StudioSettings(page.settings._path)
    from studio.measurements import kept

    assert kept(again)["forcing"].fps == 21.46 and kept(again)["forcing"].at[:2] == "20"


def test_nothing_is_measured_while_it_talks(page):
    page.flow.state.update_session(live=True)
    detail = pick(page, "wan")
    assert not detail.measure.isEnabled() and "Stop talking" in detail.measure.toolTip()
    assert detail.load.isEnabled()


# --- folders, empty, old engines ---
def test_without_models_it_says_where_to_put_them_and_which_are_known(page, monkeypatch):
    opened = []
    monkeypatch.setattr("studio.model_page.show_folder", opened.append)
    page.models.refresh()
    page.flow.link.answer(pm.ListModels, rows.listing(rows.PORTRAIT, rows.TINY))
    panel = page.window.models
    assert panel.card.isVisible() and "/home/u/models" in panel.advice.text()
    for family in ("Wan2.1", "Self-Forcing", "LongLive", "LiveAvatar", "S2V", "CausVid"):
        assert family in panel.advice.text()
    panel.home.click()
    assert [str(path) for path in opened] == ["/home/u/models"]


def test_another_folder_restarts_the_local_engine_and_can_be_undone(page, monkeypatch, tmp_path):
    monkeypatch.setattr(dialogs, "choose_folder", lambda *_: tmp_path)
    page.window.action("add_models_folder").trigger()
    assert page.flow.engine.folders == [str(tmp_path)] == page.settings.strings("checkpoints")
    assert "restarts" in page.window.toast.text.text()
    texts = [a.text() for a in page.window.models.folders.menu().actions()]
    assert f"Stop looking in {model_words.shown_path(str(tmp_path))}" in texts
    page.window.toast.action.click()
    assert page.flow.engine.folders == [] == page.settings.strings("checkpoints")


def test_a_remote_engine_keeps_its_own_folders(page, monkeypatch):
    monkeypatch.setattr(dialogs, "choose_folder", lambda *_: pytest.fail("asked for a folder"))
    page.flow.state.update_engine(local=False)
    page.window.action("add_models_folder").trigger()
    assert "--checkpoints" in page.window.toast.text.text()
    assert not pick(page, "wan").folder.isVisible()


def test_an_engine_that_knows_no_models_says_so(app):
    app.flow.state.update_engine(features=(), version="0.1")
    app.window.action("panel_models").trigger()
    panel = app.window.models
    assert not app.flow.link.asked(pm.ListModels) and not panel.detail.isVisible()
    assert "knows of no models" in panel.headline.text() and "Engine 0.1" in panel.advice.text()


def test_a_list_that_fails_is_told_and_asked_for_again(page):
    page.models.refresh()
    page.flow.link.answer(pm.ListModels, EngineError("timeout", "the engine did not answer"))
    assert page.models.view.trouble == "the engine did not answer"
    page.window.action("refresh_models").trigger()
    assert len(page.flow.link.asked(pm.ListModels)) == 3


@pytest.mark.parametrize("model", rows.ALL, ids=lambda m: m.name)
def test_every_badge_has_a_colour_of_the_theme(model):
    for stage in ("portrait", model.name):
        word, tone = model_words.badge(model, ModelsView(on_stage=stage))
        assert word and tone in theme.COLORS
