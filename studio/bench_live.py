"""A live run without a window, measured: `python -m studio.bench_live --minutes 10 --record`.

Plays a file again and again (or listens to the microphone) through the real engine, paints
off-screen and prints one JSON object: frames, drops by reason, sound against picture at the start,
at the end and after a 500 ms stall of the GUI, latency, memory growth of both processes. Frames
painted off-screen cost less than on a screen; everything else is the studio's own path.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import wave
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QGuiApplication, QImage, QPainter

from engine.clock import HEIGHT, SAMPLE_RATE, SAMPLES_PER_FRAME, WIDTH, samples_to_ms
from engine.errors import EngineError
from engine.protocol.character_file import read_character
from studio.engine_process import engine_command
from studio.file_audio import FileAudio
from studio.session_flow import SessionFlow
from studio.settings import StudioSettings

VIEW = (540, 834)  # px, the size of the viewer in the default window
WINDOW_S = 10.0  # "start" and "end" are the first and last ten seconds
STALL_S = 0.5


class LiveRun:
    """Drives one flow from go-live to the report."""

    def __init__(self, flow: SessionFlow, options: argparse.Namespace) -> None:
        self._flow = flow
        self._options = options
        self._canvas = QImage(*VIEW, QImage.Format.Format_RGB32)
        self._offsets: list[tuple[float, float]] = []  # (seconds live, ms)
        self._memory: list[tuple[float, float, float]] = []  # (minutes, studio MB, engine MB)
        self._began = self._live_since = time.monotonic()
        self._stalled_at = 0.0
        self.report: dict[str, Any] = {}
        flow.frame_waiting.connect(self._paint)
        flow.failed.connect(self._failed)
        flow.talk.running.connect(lambda done: QTimer.singleShot(300, self._go))

    def _go(self) -> None:
        if self._live_since == self._began:
            self.report["cold_start_s"] = round(time.monotonic() - self._began, 2)
            self._live_since = time.monotonic()
            if self._options.record:
                folder = Path(tempfile.mkdtemp(prefix="avatar-live-"))
                self._flow.start_recording(folder / "live.mp4")
            ms = int(self._options.minutes * 60_000)
            QTimer.singleShot(ms, self._end)
            QTimer.singleShot(ms // 2, self._stall)
        self._flow.go_live()

    def _paint(self) -> None:
        frame = self._flow.mailbox.take()
        if frame is None:
            return
        begun = time.perf_counter()
        picture = QImage(frame.pixels.data, WIDTH, HEIGHT, QImage.Format.Format_RGB32)
        painter = QPainter(self._canvas)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawImage(self._canvas.rect(), picture)
        painter.end()
        now = time.monotonic_ns()
        self._flow.timings.painted(frame, now, (time.perf_counter() - begun) * 1000)
        position = self._flow.voice.position(now) if self._flow.state.session.live else None
        if position is not None and self._flow.voice.is_heard and not frame.idle:
            behind = position - frame.pts
            outside = max(behind - SAMPLES_PER_FRAME, 0) + min(behind, 0)
            self._offsets.append((time.monotonic() - self._live_since, samples_to_ms(outside)))
        self._note_memory()

    def _note_memory(self) -> None:
        minutes = (time.monotonic() - self._live_since) / 60
        if not self._memory or minutes - self._memory[-1][0] > 0.1:
            health = self._flow.state.engine.health
            engine_mb = health.rss_bytes / 1e6 if health else 0.0
            self._memory.append((minutes, psutil.Process().memory_info().rss / 1e6, engine_mb))

    def _stall(self) -> None:
        time.sleep(STALL_S)
        self._stalled_at = time.monotonic() - self._live_since

    def _end(self) -> None:
        now = time.monotonic_ns()
        view = self._flow.timings.view(now)
        seconds = time.monotonic() - self._live_since
        self.report |= {
            "seconds": round(seconds, 1), "frames_painted": view.frames_painted,
            "fps": round(view.frames_painted / seconds, 3), "fps_last_2_s": round(view.fps, 2),
            "dropped": view.dropped, "frames_late": view.frames_late,
            "offset_ms": self._offset_report(seconds),
            "latency_ms": view.latency and [view.latency.p50_ms, view.latency.p95_ms],
            "stages_ms": {k: [round(s.p50_ms, 2), round(s.p95_ms, 2)]
                          for k, s in view.stages.items()},
            "memory_mb_per_minute": self._memory_slopes(),
        }  # fmt: skip
        self._flow.stop_recording()
        recording = self._flow.state.recording
        self.report["recording"] = {
            "path": recording.path, "repeated_frames": recording.repeated_frames,
            "queue_dropped": self._flow.recorder.dropped,
        }  # fmt: skip
        QTimer.singleShot(1500, QCoreApplication.quit)

    def _offset_report(self, seconds: float) -> dict[str, Any]:
        """Median and largest, ms: how far the sound at a paint lies outside that frame's time."""
        after = self._stalled_at + 0.1
        windows = {
            "start": (1.0, WINDOW_S), "after_stall": (after, after + 2.0),
            "end": (seconds - WINDOW_S, seconds), "all": (1.0, seconds),
        }  # fmt: skip
        report = {}
        for name, (low, high) in windows.items():
            values = np.array([ms for at, ms in self._offsets if low <= at < high])
            if len(values):
                p95 = float(np.percentile(np.abs(values), 95))
                report[name] = {"p50": round(float(np.median(values)), 2), "abs_p95": round(p95, 2)}
        return report

    def _memory_slopes(self) -> dict[str, float]:
        """Least-squares slope after the first fifth of the run."""
        table = np.array(self._memory).reshape(-1, 3)
        late = table[len(table) // 5 :]
        if len(late) < 3:
            return {}
        studio, engine = (float(np.polyfit(late[:, 0], late[:, k], 1)[0]) for k in (1, 2))
        return {"studio": round(studio, 3), "engine": round(engine, 3)}

    def _failed(self, error: EngineError) -> None:
        self.report.setdefault("errors", []).append(str(error))
        if self._live_since == self._began:
            QCoreApplication.quit()


def long_file(audio: Path, minutes: float) -> Path:
    """`audio` again and again in a WAV that outlasts the run."""
    file = FileAudio(audio)
    pcm = (file.samples(0, len(file)) * 32767).astype(np.int16)
    path = Path(tempfile.mkdtemp(prefix="avatar-live-")) / "long.wav"
    with wave.open(str(path), "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(SAMPLE_RATE)
        for _ in range(int((minutes * 60 + 5) * SAMPLE_RATE / len(pcm)) + 1):
            wav.writeframes(pcm.tobytes())
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="studio.bench_live", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--character", type=Path, required=True, help="an .avatar file")
    parser.add_argument("--audio", type=Path, help="file to repeat; without it the microphone")
    parser.add_argument("--microphone", default="", help="by name; empty is the default")
    parser.add_argument("--monitor", action="store_true", help="hear the microphone")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--model", default="portrait")
    parser.add_argument("--model-module", help="passed to the engine")
    parser.add_argument("--frames-per-chunk", type=int, default=0)
    options = parser.parse_args()
    application = QGuiApplication(["bench_live", "-platform", "offscreen"])
    settings = StudioSettings(overrides={
        "model": options.model, "voice": "file" if options.audio else "microphone",
        "audio_file": str(long_file(options.audio, options.minutes)) if options.audio else "",
        "microphone": options.microphone,
        "monitor": options.monitor, "frames_per_chunk": options.frames_per_chunk,
    })  # fmt: skip
    command = engine_command()
    if options.model_module:
        command += ["--model-module", options.model_module]
    flow = SessionFlow(settings, engine_command=command)
    run = LiveRun(flow, options)
    flow.open_character(*read_character(options.character))
    flow.start()
    application.exec()
    flow.shut_down()
    sys.stdout.write(json.dumps(run.report, indent=1) + "\n")
    return 1 if run.report.get("errors") else 0


if __name__ == "__main__":
    sys.exit(main())
