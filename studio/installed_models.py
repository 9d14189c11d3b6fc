"""The engine's models as the studio has them: listed, loaded, measured, put on stage, and back.

One slow request at a time, with progress and cancel; what comes of it is in `view`. A model that
cannot be opened gives way to the one before. Asks no questions: `model_page.py` does. GUI thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from engine.protocol import messages as pm
from studio import measurements
from studio.character_opening import PICTURE_CODES
from studio.models_view import ModelsView, Told, Work
from studio.session_flow import SessionFlow
from studio.state import EngineView, SessionView

FEATURE = "models"
LIST_S = 30.0  # a try; the first list imports torch (2-5 s) and waits behind a load
WORK_S = 60.0  # a try; extended by every progress report
MEASURE_S = 10.0  # of the measurement itself; 1 to 300 are allowed


class InstalledModels(QObject):
    """`changed(ModelsView)` whenever the view has changed; methods return at once."""

    changed = Signal(object)
    staged = Signal(str, str)  # model now on stage, the one before

    def __init__(self, flow: SessionFlow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._flow = flow
        self._settings = flow.settings
        self._request = 0  # id of the slow request under way
        self._before: tuple[str, bool] | None = None  # while a model is being put on stage
        self._noise = False
        self._stale = True  # the list is not of this engine
        self.watched = False  # somebody looks at the page
        added = self._settings.strings("checkpoints")
        flow.engine.look_in(added)
        self.view = ModelsView(added=tuple(added), measured=measurements.kept(self._settings))
        flow.state.engine_changed.connect(self._engine)
        flow.state.session_changed.connect(self._session)
        flow.link.telemetry.connect(self._telemetry)
        flow.talk.failed.connect(self._step_failed)
        flow.character_loaded.connect(lambda _: self._on_stage())
        self._engine(flow.state.engine)
        self._session(flow.state.session)

    # --- what a person does -------------------------------------------------------------------
    def watch(self, looks: bool) -> None:
        """Whether somebody looks; the first look asks the engine for its list."""
        self.watched = looks
        if looks and self._stale:
            self.refresh()

    def refresh(self) -> None:
        """Ask for the list again, unless that is being done."""
        if not (self.view.ready and self.view.supported) or self.view.listing:
            return
        self._stale = False
        self._show(listing=True)
        self._flow.link.request(pm.ListModels(), self._listed, self._not_listed, LIST_S)

    def load(self, name: str) -> None:
        self._begin("load", name, pm.LoadModel(model=name), self._loaded)

    def unload(self, name: str) -> None:
        self._begin("unload", name, pm.UnloadModel(model=name), self._unloaded)

    def measure(self, name: str, seconds: float = MEASURE_S) -> None:
        self._begin("measure", name, pm.BenchModel(model=name, seconds=seconds), self._measured)

    def use(self, name: str, noise: bool = False) -> None:
        """Put a model on stage; one that is not loaded is read first, while the old one goes on."""
        model = self.view.find(name)
        if self.view.work or (name, noise) == (self.view.on_stage, self._noise):
            return
        if model is None or model.loaded or not model.path or self._stage_is_heavy():
            self._switch(name, noise)
            return
        self._begin("use", name, pm.LoadModel(model=name), lambda _: self._switch(name, noise))

    def cancel(self) -> None:
        """Stop what is under way; the engine answers it as cancelled."""
        if self._request:
            self._flow.link.request(pm.Cancel(request=self._request))
        elif self._before is not None:
            self._go_back(Told(self.view.on_stage, "Cancelled"))

    def cancel_use(self) -> None:
        """The character's loading is cancelled, and with it the model that it was for."""
        if self._before is not None:
            self._go_back(Told(self.view.on_stage, "Cancelled"))

    def look_in(self, folders: list[str]) -> None:
        """Further folders of our own engine, which restarts; its list is asked for again."""
        self._settings.set("checkpoints", folders)
        self._show(added=tuple(folders))
        self._flow.engine.look_in(folders)

    # --- requests -----------------------------------------------------------------------------
    def _begin(
        self, kind: Any, name: str, body: pm.Request, then: Callable[[Any], None]
    ) -> None:  # fmt: skip
        if self.view.work is not None or not self.view.ready:
            return

        def answered(reply: pm.Reply) -> None:
            self._request = 0
            self._show(work=None)
            then(reply)

        self._show(work=Work(kind, name), told=None)
        self._request = self._flow.link.request(
            body, answered, lambda error: self._failed(kind, name, error), WORK_S
        )

    def _failed(self, kind: str, name: str, error: EngineError) -> None:
        self._request = 0
        self._show(work=None)
        if kind == "use" and error.code == "not_ready":  # several GPUs: the session reads it
            self._switch(name, False)
        elif error.code == "cancelled":
            self._show(told=Told(name, "Cancelled"))
        else:
            self._show(told=Told(name, str(error), "danger"))

    def _listed(self, reply: pm.Reply) -> None:
        assert isinstance(reply, pm.ModelList)
        self._show(
            listing=False, models=tuple(reply.models), folders=tuple(reply.folders),
            home=reply.home, device=reply.device, free_bytes=reply.free_bytes, trouble="",
        )  # fmt: skip

    def _not_listed(self, error: EngineError) -> None:
        self._stale = True
        self._show(listing=False, trouble=str(error))

    def _loaded(self, reply: pm.ModelLoaded) -> None:
        where = f"; {reply.note}" if reply.note else ""
        text = f"Loaded in {reply.load_ms / 1000:.1f} s, {reply.bytes / 1e9:.2f} GB{where}"
        self._show(told=Told(reply.model, text))
        self.refresh()

    def _unloaded(self, reply: pm.Reply) -> None:
        self.refresh()

    def _measured(self, reply: pm.ModelBenched) -> None:
        beside = self.view.on_stage if self._flow.state.character.loaded else ""
        new = measurements.measurement(reply, datetime.now(), beside)
        measurements.keep(self._settings, new)
        self._show(measured=measurements.kept(self._settings))
        self.refresh()

    def _telemetry(self, message: pm.Telemetry) -> None:
        if not isinstance(message, pm.ProgressReport) or self.view.work is None:
            return
        if message.request in (self._request, self._flow.talk.loading) and message.request:
            work = replace(self.view.work, fraction=message.fraction, what=message.what)
            self._show(work=work)

    # --- on stage -----------------------------------------------------------------------------
    def _stage_is_heavy(self) -> bool:
        """The model on stage fills memory that the next one may need: do not hold both."""
        here = self.view.find(self.view.on_stage)
        return here is not None and here.needs_bytes > 0

    def _switch(self, name: str, noise: bool) -> None:
        flow = self._flow
        self._before = (flow.state.session.model, self._noise)
        self._noise = noise
        self._show(work=Work("use", name, what="opening the model"), told=None)
        if flow.state.character.spec is not None:
            self._waiting("opening the model")
        flow.set_model(name, noise)
        if flow.state.character.spec is None:  # nobody to wait for
            self._on_stage()

    def _on_stage(self) -> None:
        """A character stands: so does its model."""
        if self._before is None:
            return
        before, _ = self._before
        self._before = None
        self._show(work=None)
        self.staged.emit(self.view.on_stage, before)
        if self.watched:
            self.refresh()
        else:
            self._stale = True

    def _step_failed(self, error: EngineError) -> None:
        """A session or its character failed: when it is for a new model, go back to the old one."""
        if self._before is not None and error.code not in PICTURE_CODES:
            self._go_back(Told(self.view.on_stage, str(error), "danger"))

    def _go_back(self, told: Told) -> None:
        assert self._before is not None
        (name, noise), self._before = self._before, None
        self._noise = noise
        self._show(work=None, told=told)
        if self._flow.state.character.spec is not None:
            self._waiting("back to the old model")
        self._flow.set_model(name, noise)

    def _waiting(self, what: str) -> None:
        """The character waits for its model, and its panel says so."""
        self._flow.state.update_character(loaded=False, busy=True, progress=0.0, what=what)

    # --- state --------------------------------------------------------------------------------
    def _engine(self, engine: EngineView) -> None:
        ready = engine.link == "ready"
        came = ready and not self.view.ready
        if self.view.ready and not ready:
            self._request, self._before, self._stale = 0, None, True
        supported = not ready or FEATURE in engine.features
        self._show(
            ready=ready, supported=supported, local=engine.local,
            models=self.view.models if supported else (),
            version=engine.version, work=self.view.work if ready else None,
            listing=self.view.listing and ready,
        )  # fmt: skip
        if came and self.watched:
            self.refresh()

    def _session(self, session: SessionView) -> None:
        self._show(on_stage=session.model, live=session.live)

    def _show(self, **changes: Any) -> None:
        new = replace(self.view, **changes)
        if new != self.view:
            self.view = new
            self.changed.emit(new)
