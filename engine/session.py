"""One conversation with one character: states, epochs, counters, when silence is filled in.

Pure logic: `now` is an argument everywhere. Knows nothing of sockets, processes or models.
"""

from __future__ import annotations

import dataclasses

from engine.audio import MAX_SAMPLE, Chunker, FrameStamp
from engine.clock import SAMPLE_RATE, SAMPLES_PER_FRAME, frame_pts
from engine.errors import EngineError
from engine.models.base import Chunk
from engine.protocol.audio_block import AudioBlock
from engine.protocol.messages import Counters, Done, SessionState, State

STARVED_S = 0.1  # no audio for so long: silence is filled in, the character idles
START_GRACE_S = 0.5  # ... but a source may take this long to begin after Start
MAX_LEAD_S = 1.0  # how far a file may be sent ahead of its own clock
CHUNKS_IN_FLIGHT = 3  # with the worker: one generated, one decoded, one ready
CLOSED_STATES = ("COMPLETED", "FAILED", "CANCELLED")


@dataclasses.dataclass(slots=True)
class Tally:
    """Counters of the wire that this session counts itself."""

    frames_published: int = 0
    frames_dropped_epoch: int = 0
    blocks_dropped_epoch: int = 0
    blocks_malformed: int = 0
    worker_restarts: int = 0


class Session:
    """`due_chunks(now)` yields work, `frame_done` says whether its picture may be shown."""

    def __init__(self, number: int, chunker: Chunker, now: float) -> None:
        self.number = number
        self.chunker = chunker
        self.opened_at = now
        self.state: State = "NOT_READY"
        self.epoch = 0
        self.run = 0  # counts restarts of the chunk stream, also those within an epoch
        self.tally = Tally()
        self.error = EngineError("internal", "")
        self.note = ""  # what SessionState says while something is being healed
        self.changed = True  # a SessionState is due
        self._has_character = False
        self._worker_ready = True
        self._in_flight: dict[int, list[FrameStamp]] = {}  # chunk index -> its frames
        # The clock of the source: sample `_anchor[0]` was due at `_anchor[1]`.
        self._anchor = (0, now)
        self._grace_until = now

    # --- what the studio asks ---------------------------------------------------------------
    def character_taken(self) -> None:
        """A character was prepared; a running session goes on with it from the next chunk."""
        self._has_character = True
        if self.state in ("NOT_READY", "FAILED"):
            self._to("READY")
        elif self.state == "RUNNING":
            self.chunker.restart_stream()

    def start(self, now: float, at_sample: int = -1) -> Done:
        """READY or COMPLETED -> RUNNING with a new epoch; a RUNNING session starts over."""
        if not self._has_character or self.state in ("FAILED", "CANCELLED"):
            raise EngineError(
                "not_ready", f"session is {self.state}, it cannot start", "load a character first"
            )
        self._new_epoch(now, at_sample)
        self._grace_until = now + START_GRACE_S
        self._to("RUNNING")
        return Done(epoch=self.epoch, first_sample=self.chunker.head)

    def interrupt(self, now: float, at_sample: int = -1) -> Done:
        """Raise the epoch; a running session goes on from the next frame, at rest."""
        self._new_epoch(now, at_sample)
        return Done(epoch=self.epoch, first_sample=self.chunker.head)

    def stop(self, now: float) -> Done:
        """RUNNING or COMPLETED -> READY; what is under way is dropped."""
        self._new_epoch(now, -1)
        if self.state in ("RUNNING", "COMPLETED"):
            self._to("READY")
        return Done(epoch=self.epoch, first_sample=self.chunker.head)

    def close(self) -> None:
        if self.state not in CLOSED_STATES:
            self._to("CANCELLED")

    def fail(self, error: EngineError) -> None:
        self.error = error
        self._to("FAILED")

    # --- audio in -----------------------------------------------------------------------------
    def take_block(self, block: AudioBlock, now: float) -> None:
        if block.epoch != self.epoch or self.state != "RUNNING":
            self.tally.blocks_dropped_epoch += 1
            return
        if not self.chunker.append(block.first_sample, block.samples, block.capture_time_ns):
            self.tally.blocks_malformed += 1
            return
        self._set_anchor(now, live=block.capture_time_ns != 0)
        self._grace_until = now
        if block.last:
            self.chunker.finish()

    def due_chunks(self, now: float) -> list[Chunk]:
        """Chunks to hand to the worker now; fills silence where the source is starved."""
        if self.state != "RUNNING" or not self._worker_ready:
            return []
        if now >= self._grace_until:
            self._fill_if_starved(now)
        chunks: list[Chunk] = []
        while len(self._in_flight) < CHUNKS_IN_FLIGHT:
            run_begins = self.chunker.index == 0
            if run_begins and self._in_flight:
                break  # the old run's chunks would share their numbers with the new one's
            chunk = self.chunker.next_chunk()
            if chunk is None:
                break
            if chunk.index == 0:
                self.run += 1
            frames = range(chunk.first_frame, chunk.first_frame + chunk.frame_count)
            self._in_flight[chunk.index] = [self.chunker.stamp(i) for i in frames]
            chunks.append(chunk)
        return chunks

    # --- pictures out -------------------------------------------------------------------------
    def frame_stamp(self, run: int, chunk_index: int, frame_index: int) -> FrameStamp | None:
        """The stamp of a frame that may be shown; None (and counted) if it is out of date."""
        stamps = self._in_flight.get(chunk_index) if run == self.run else None
        if stamps is None or self.state != "RUNNING":
            self.tally.frames_dropped_epoch += 1
            return None
        end = self.chunker.end_frame
        if end is not None and frame_index >= end:
            return None  # padding behind the last sample
        stamp = next((s for s in stamps if s.frame_index == frame_index), None)
        if stamp is not None:
            self.tally.frames_published += 1
        return stamp

    def chunk_done(self, run: int, chunk_index: int) -> bool:
        """The worker has delivered all frames of a chunk. False: it was out of date."""
        if run != self.run or self._in_flight.pop(chunk_index, None) is None:
            return False
        if self.chunker.finished and not self._in_flight and self.state == "RUNNING":
            self._to("COMPLETED")
        return True

    @property
    def queued_chunks(self) -> int:
        return len(self._in_flight)

    # --- the worker's fate --------------------------------------------------------------------
    def worker_lost(self, reason: str) -> None:
        """Speech goes on when a new worker is ready; audio that waits until then is dropped."""
        self._worker_ready = False
        self._in_flight.clear()
        self.tally.worker_restarts += 1
        self.note = f"restarting after: {reason}"
        self.changed = True

    def worker_back(self) -> None:
        self._worker_ready = True
        self.note = ""
        self.chunker.skip_to_newest()
        self.changed = True

    def snapshot(
        self, now: float, kernel_path: str = "", synthetic: bool = False, ranks: str = ""
    ) -> SessionState:
        failed = self.state == "FAILED"
        return SessionState(
            session=self.number, state=self.state, epoch=self.epoch, counters=self.counters(),
            code=self.error.code if failed else ("worker_died" if self.note else ""),
            message=self.error.message if failed else self.note,
            hint=self.error.hint if failed else "",
            age_s=round(now - self.opened_at, 3), synthetic=synthetic, kernel_path=kernel_path,
            ranks=ranks,
        )  # fmt: skip

    def counters(self) -> Counters:
        audio = self.chunker.counts
        return Counters(
            **dataclasses.asdict(self.tally), audio_gap_samples=audio.gap,
            audio_late_samples=audio.late, audio_filled_samples=audio.filled,
            chunks_dropped=audio.chunks_dropped,
        )  # fmt: skip

    # --- inside ---------------------------------------------------------------------------------
    def _to(self, state: State) -> None:
        self.changed = self.changed or state != self.state
        self.state = state

    def _new_epoch(self, now: float, at_sample: int) -> None:
        if at_sample > MAX_SAMPLE:
            raise EngineError(
                "bad_input", f"at_sample {at_sample} is beyond {MAX_SAMPLE}", "count at 48 kHz"
            )
        self.epoch += 1
        self._in_flight.clear()
        sample = at_sample if at_sample >= 0 else self.chunker.head
        frame = -(-sample // SAMPLES_PER_FRAME)
        self.run += 1  # whatever the worker still delivers is out of date
        self.chunker.restart(self.epoch, frame)
        self._anchor = (frame_pts(frame), now)
        self._grace_until = now
        self.changed = True

    def _due(self, now: float) -> int:
        sample, when = self._anchor
        return sample + int((now - when) * SAMPLE_RATE)

    def _set_anchor(self, now: float, live: bool) -> None:
        """A microphone is at its head by definition; a file leads its clock by 0 to 1 s."""
        head = self.chunker.head
        due = self._due(now)
        lead = 0 if live else min(max(head - due, 0), int(MAX_LEAD_S * SAMPLE_RATE))
        self._anchor = (head - lead, now)

    def _fill_if_starved(self, now: float) -> None:
        due = self._due(now)
        if due - self.chunker.head > STARVED_S * SAMPLE_RATE:
            # Up to what is due, less the pause itself, would leave the face 100 ms behind.
            self.chunker.fill(due)
