"""Which models exist: name -> "module:Class" of generator and decoder, imported on first use."""

from __future__ import annotations

# name -> (generator, decoder); a new model is one file and one line here.
MODELS: dict[str, tuple[str, str]] = {
    "portrait": (
        "engine.models.portrait:PortraitGenerator",
        "engine.models.portrait:PortraitDecoder",
    ),
    "avatar-57b": (
        "engine.models.video:avatar_57b_generator",
        "engine.models.video:avatar_57b_decoder",
    ),
    "avatar-5b": (
        "engine.models.video:avatar_5b_generator",
        "engine.models.video:avatar_5b_decoder",
    ),
    "tiny": (
        "engine.models.video:tiny_generator",
        "engine.models.video:tiny_decoder",
    ),
}
