"""Conversation: brings a session on the engine to where the studio wants it, and back there again.

Wanted: a model, a character, running. Whenever the engine answers (first time, after a crash, after
a lost link) the same steps are taken: open, load, start. Knows nothing of audio or pictures.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError
from engine.protocol import messages as pm
from engine.protocol.character import CharacterSpec, Settings
from studio.link import EngineLink

OPEN_S = 20.0  # a try; a cold worker imports its model first
LOAD_S = 15.0  # a try; extended by every progress report

OnDone = Callable[[pm.Done], None]


class Conversation(QObject):
    """GUI thread. `session` is 0 and `epoch` -1 until the engine has given them."""

    running = Signal(object)  # Done: the character is on stage; blocks begin at first_sample
    character_loaded = Signal(object)  # CharacterLoaded
    failed = Signal(object)  # EngineError of a step or request

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self.session = 0
        self._former = 0  # open on the engine when the link was lost
        self.epoch = -1
        self.synthetic = False
        self.is_running = False
        self._model = "portrait"
        self._options: dict[str, float] = {}
        self._spec: CharacterSpec | None = None
        self._picture = b""
        self._loading = 0
        self._engine_is_there = False
        self._generation = 0  # raised whenever older answers have become meaningless

    # --- what is wanted -----------------------------------------------------------------------
    @property
    def loading(self) -> int:
        """Id of the request that loads a character, 0 when none does."""
        return self._loading

    def want_model(self, model: str, frames_per_chunk: float = 0, noise: bool = False) -> None:
        """Another model means another session; the character goes along.

        0 frames a chunk are the model's own number; `noise` allows random weights.
        """
        wanted = {"frames_per_chunk": float(frames_per_chunk), "synthetic": float(noise)}
        options = {name: value for name, value in wanted.items() if value}
        if (model, options) != (self._model, self._options):
            self._model, self._options = model, options
            if self._engine_is_there:  # also after a model that could not be opened
                self.engine_came()

    def want_character(self, spec: CharacterSpec, picture: bytes) -> None:
        self._spec, self._picture = spec, picture
        if self._loading:
            self._send(pm.Cancel(request=self._loading))
            self._loading = 0
        if self.session:
            self._load()

    def want_settings(self, settings: Settings) -> None:
        if self._spec is not None:
            self._spec = msgspec.structs.replace(self._spec, settings=settings)
        if self.session and self._spec is not None:
            self._send(pm.SetSettings(session=self.session, settings=settings))

    # --- the engine comes and goes ------------------------------------------------------------
    def engine_came(self) -> None:
        """WELCOME: take all steps anew, in a new session; an old one is not left behind."""
        self.engine_left()
        self._engine_is_there = True
        if self._former:
            self._send(pm.CloseSession(session=self._former))  # of another engine: it says no
            self._former = 0
        self._request(
            pm.OpenSession(model=self._model, options=self._options), self._opened, OPEN_S
        )

    def engine_left(self) -> None:
        self._generation += 1
        self._former = self.session or self._former
        self.session, self.epoch, self.is_running, self._loading = 0, -1, False, 0
        self._engine_is_there = False

    def _opened(self, reply: pm.Reply) -> None:
        assert isinstance(reply, pm.SessionOpened)
        self.session, self.synthetic = reply.session, reply.synthetic
        self._link.follow_session(reply.session)
        if self._spec is not None:
            self._load()

    def _load(self) -> None:
        assert self._spec is not None
        body = pm.LoadCharacter(session=self.session, spec=self._spec, picture=self._picture)
        self._loading = self._request(body, self._loaded, LOAD_S)

    def _loaded(self, reply: pm.Reply) -> None:
        assert isinstance(reply, pm.CharacterLoaded)
        self._loading = 0
        self.character_loaded.emit(reply)
        # Once on stage it breathes and blinks: the session runs, with or without a voice.
        self.begin(self.running.emit)

    # --- the running session ------------------------------------------------------------------
    def begin(self, on_done: OnDone, at_sample: int = -1) -> None:
        """A fresh epoch: by Start for a session that does not run, else by Interrupt."""
        if self.is_running:
            body = pm.Interrupt(session=self.session, at_sample=at_sample)
            self._change_epoch(body, on_done)
        else:
            self._change_epoch(pm.Start(session=self.session), on_done)

    def _change_epoch(self, body: pm.Request, on_done: OnDone) -> None:
        def answered(reply: pm.Reply) -> None:
            assert isinstance(reply, pm.Done)
            self.epoch, self.is_running = reply.epoch, True
            on_done(reply)

        self._request(body, answered)

    def completed(self) -> None:
        """The engine says that the stream has ended: the next `begin` is a Start."""
        self.is_running = False

    # --- requests -----------------------------------------------------------------------------
    def _send(self, body: pm.Request) -> None:
        self._link.request(body)

    def _request(
        self, body: pm.Request, on_reply: Callable[[pm.Reply], None], deadline_s: float = 2.0
    ) -> int:
        """Answers that belong to a session of the past are dropped."""
        generation = self._generation

        def replied(reply: pm.Reply) -> None:
            if generation == self._generation:
                on_reply(reply)
            elif isinstance(reply, pm.SessionOpened):  # of a model that is wanted no more
                self._send(pm.CloseSession(session=reply.session))

        def refused(error: EngineError) -> None:
            if generation == self._generation and error.code != "cancelled":
                self.failed.emit(error)

        return self._link.request(body, replied, refused, deadline_s)
