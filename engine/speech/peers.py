"""Other people's lip-sync systems, run on the same clips for comparison. Evaluation only.

Each is fetched outside the repository (`npm install rhubarb-lip-sync-wasm @met4citizen/headaudio`,
`pip install pocketsphinx`); none of their code is part of this project. A peer that is missing is
left out. Knows nothing of our encoder.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import soxr

from engine.speech.classes import CLOSED, LABIO, LIP_OF_PHONE, NARROW, OPEN, REST, ROUND
from engine.speech.corpus.clip import Clip
from engine.speech.resample import ENCODER_RATE

Shower = Callable[[Clip], np.ndarray]  # clip -> lip class at every 24 fps frame centre
RHUBARB: Final = {
    "A": CLOSED,
    "B": NARROW,
    "C": OPEN,
    "D": OPEN,
    "E": ROUND,
    "F": ROUND,
    "G": LABIO,
    "H": NARROW,
    "X": REST,
}
_RHUBARB_SCRIPT: Final = """
import { readFileSync } from 'fs';
import { createRequire } from 'module';
const require = createRequire(process.argv[2] + '/package.json');
const { Rhubarb } = require('rhubarb-lip-sync-wasm');
const pcm = readFileSync(process.argv[3]);
const result = await Rhubarb.getLipSync(pcm, {});
process.stdout.write('@@' + JSON.stringify(result) + '\\n');
process.exit(0);
"""
# Oculus order: aa E I O U PP SS TH DD FF kk nn RR CH sil
HEADAUDIO: Final = (
    OPEN,
    OPEN,
    NARROW,
    ROUND,
    ROUND,
    CLOSED,
    NARROW,
    NARROW,
    NARROW,
    LABIO,
    NARROW,
    NARROW,
    ROUND,
    NARROW,
    REST,
)
_HEADAUDIO_SCRIPT: Final = """
import { readFileSync } from 'fs';
const home = process.argv[2] + '/node_modules/@met4citizen/headaudio/';
const { Processor } = await import(home + 'modules/processor.mjs');
const { Training } = await import(home + 'modules/training.mjs');
const file = readFileSync(home + 'dist/model-en-mixed.bin');
const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength);
globalThis.fetch = async () => ({ ok: true, arrayBuffer: async () => bytes });
let now = 0;
const events = [];
const port = { onmessage: null, postMessage: (m) => {
  if (m.event === 'viseme') events.push([now, m.viseme]);
  if (m.event === 'ended') events.push([now, 14]);
} };
const processor = new Processor({ sampleRate: 48000 }, { port });
const { model } = await Training.prototype.loadModel.call(
  Object.create(Training.prototype), 'model');
processor._onmessage({ data: { event: 'model', model } });
const raw = readFileSync(process.argv[3]);
const pcm = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength));
for (let i = 0; i + 128 <= pcm.length; i += 128) {
  now = (i + 128) / 48000;
  processor.process(pcm.subarray(i, i + 128));
}
process.stdout.write('@@' + JSON.stringify(events) + '\\n');
process.exit(0);
"""


def available(tools: Path) -> dict[str, Shower]:
    """Peers that can run here. `tools`: a folder with node_modules."""
    found: dict[str, Shower] = {"loudness": loudness, "constant narrow": constant}
    try:
        import pocketsphinx  # noqa: F401

        found["pocketsphinx allphone (whole clip)"] = partial(allphone, _phone_decoder())
    except ImportError:
        pass
    if (tools / "node_modules" / "@met4citizen" / "headaudio").exists():
        found["headaudio (80 ms look-ahead)"] = partial(headaudio, tools)
    if (tools / "node_modules" / "rhubarb-lip-sync-wasm").exists():
        found["Rhubarb (whole clip)"] = partial(rhubarb, tools)
    return found


def frame_times(clip: Clip) -> np.ndarray:
    """Frame centres of a clip in seconds."""
    return (np.arange(int(clip.seconds * 24)) + 0.5) / 24


def constant(clip: Clip) -> np.ndarray:
    """The floor: always the commonest class."""
    return np.full(len(frame_times(clip)), NARROW)


def loudness(clip: Clip) -> np.ndarray:
    """Four levels of frame loudness below the clip's 95th percentile."""
    level = np.array(
        [
            20
            * np.log10(
                np.sqrt(
                    np.mean(
                        clip.pcm[
                            max(0, int((t - 0.02) * ENCODER_RATE)) : int((t + 0.02) * ENCODER_RATE)
                        ]
                        ** 2
                    )
                )
                + 1e-5
            )
            for t in frame_times(clip)
        ]
    )
    below = np.percentile(level, 95) - level
    return np.select([below < 8, below < 20, below < 35], [OPEN, NARROW, CLOSED], REST)


def codes_16k(clip: Clip) -> bytes:
    """16 kHz 16-bit samples."""
    pcm = soxr.resample(clip.pcm, ENCODER_RATE, 16_000)
    return (np.clip(pcm, -1, 1) * 32767).astype("<i2").tobytes()


def _phone_decoder() -> Any:
    from pocketsphinx import Decoder, get_model_path

    return Decoder(
        allphone=get_model_path("en-us/en-us-phone.lm.bin"),
        lw=2.0,
        beam=1e-20,
        pbeam=1e-20,
        loglevel="FATAL",
        lm=None,
    )


def allphone(decoder: Any, clip: Clip) -> np.ndarray:
    """Phone recognition with a phone language model over the whole utterance."""
    decoder.start_utt()
    decoder.process_raw(codes_16k(clip), full_utt=True)
    decoder.end_utt()
    times = frame_times(clip)
    out = np.full(len(times), REST)
    for seg in decoder.seg() or []:
        name = seg.word.split("(")[0]
        inside = (times >= seg.start_frame * 0.01) & (times < (seg.end_frame + 1) * 0.01)
        out[inside] = LIP_OF_PHONE.get(name, REST)
    return out


def said_by_node(script: str, tools: Path, sound: bytes) -> Any:
    """Runs a script of ours in Node over raw samples; its line after @@ as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        program, pcm = Path(folder) / "run.mjs", Path(folder) / "clip.pcm"
        program.write_text(script)
        pcm.write_bytes(sound)
        command = ["node", str(program), str(tools), str(pcm)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    line = next(row for row in done.stdout.splitlines() if row.startswith("@@"))
    return json.loads(line[2:])


def rhubarb(tools: Path, clip: Clip) -> np.ndarray:
    """Mouth shapes of the WASM build, audio alone."""
    times = frame_times(clip)
    out = np.full(len(times), REST)
    for cue in said_by_node(_RHUBARB_SCRIPT, tools, codes_16k(clip))["mouthCues"]:
        out[(times >= cue["start"]) & (times < cue["end"])] = RHUBARB[cue["value"]]
    return out


def headaudio(tools: Path, clip: Clip) -> np.ndarray:
    """Visemes as they arrive, read 80 ms after each frame's centre (our own allowance)."""
    pcm = np.concatenate([soxr.resample(clip.pcm, ENCODER_RATE, 48_000), np.zeros(4_800)])
    events = said_by_node(_HEADAUDIO_SCRIPT, tools, pcm.astype("<f4").tobytes())
    arrivals = np.array([-1.0, *[e[0] for e in events]])
    classes = np.array([REST, *[HEADAUDIO[e[1]] for e in events]])
    return classes[np.searchsorted(arrivals, frame_times(clip) + 0.08, "right") - 1]
