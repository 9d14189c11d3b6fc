"""The one primary number: how well a mouth fits its sound, 0 to 1.

Knows nothing of how its parts are measured. The form was chosen on the `tune` split: see FORM.
"""

from __future__ import annotations

from engine.qa.offset import Lag

FULL_RANGE = 0.6  # dynamics from which range is no longer missed


def headline(
    lag: Lag | None, bilabial: float | None, vowels: float | None, dynamics: float | None
) -> float | None:
    """None where the clip is too short to be compared with its sound."""
    if lag is None or dynamics is None:
        return 0.0 if dynamics is not None else None
    fit = max(0.0, lag.r0)
    parts = [max(0.0, part) for part in (bilabial, vowels) if part is not None]
    product = fit
    for part in parts:
        product *= part ** (1 / len(parts))
    return product * min(1.0, dynamics / FULL_RANGE)
