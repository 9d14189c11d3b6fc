"""The six lip classes: what a viewer can tell apart, and how phone posteriors become them.

Knows nothing of audio or of motion targets; the motion mapping uses phones, these are for scoring.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.speech.encoded import PHONES

REST, CLOSED, LABIO, NARROW, OPEN, ROUND = range(6)
LIP_NAMES: Final = ("rest", "closed", "labiodental", "narrow", "open", "round")
_MEMBERS: Final = {
    CLOSED: "P B M",
    LABIO: "F V",
    NARROW: "T D N L TH DH S Z K G NG HH Y IY IH JH CH SH ZH",
    OPEN: "AA AE AH AY EH EY AW",
    ROUND: "AO OW OY UW UH W R ER",
}
LIP_OF_PHONE: Final[dict[str, int]] = {"SIL": REST} | {
    phone: lip for lip, phones in _MEMBERS.items() for phone in phones.split()
}


def lip_index() -> np.ndarray:
    """[40] int: lip class of each phone, in PHONES order."""
    return np.array([LIP_OF_PHONE[phone] for phone in PHONES])


def lip_posteriors(posteriors: np.ndarray) -> np.ndarray:
    """[..., 40] phone posteriors -> [..., 6], summed per class."""
    membership = np.eye(6, dtype=np.float32)[lip_index()]
    return posteriors @ membership


def lip_classes(posteriors: np.ndarray, lip_factor: float = 1.0) -> np.ndarray:
    """[..., 40] -> [...] int: most likely class, closed and labiodental weighed by `lip_factor`.

    A factor above 1 finds more closures at the cost of precision; it is chosen on a dev voice.
    """
    weighed = lip_posteriors(posteriors)
    weighed[..., CLOSED] *= lip_factor
    weighed[..., LABIO] *= lip_factor
    return weighed.argmax(-1)
