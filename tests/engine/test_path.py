"""The whole path with real sockets, a real engine process and a real worker."""

from __future__ import annotations

import numpy as np

from engine.protocol import messages as pm
from tests.engine.wire_client import states


def tone(seconds, level):
    """A square wave: its RMS is its level."""
    return np.resize(np.array([level, -level], np.float32), int(48_000 * seconds))


def test_a_file_becomes_its_frames(client):
    opened = client.open()
    assert (opened.frames_per_chunk, opened.lookahead_samples) == (2, 3840)
    started = client.ask(pm.Start(session=opened.session))
    samples = np.concatenate([tone(0.25, 0.2), tone(0.25, 0.6), np.zeros(500, np.float32)])
    client.speak(opened.session, started.epoch, started.first_sample, samples, last=True)
    frames = client.collect(lambda f, t: any(s.state == "COMPLETED" for s in states(t)), drain=True)
    assert [f.frame_index for f, _ in frames] == list(range(13))  # ceil(24,500 / 2,000)
    assert [f.pts for f, _ in frames] == [2000 * i for i in range(13)]
    assert [level for _, level in frames[:12]] == [20] * 6 + [60] * 6
    assert not any(f.idle or f.synthetic for f, _ in frames)
    timings = [m for m in client.telemetry_seen if isinstance(m, pm.ChunkTimings)]
    stages = set(timings[0].stage_ms)
    assert len(timings) == 7 and {"audio", "encode", "denoise", "decode"} <= stages
    assert client.ask(pm.CloseSession(session=opened.session)) == pm.Done()
