"""Twelve sentences with the exact phone times that flite 2.2 printed (`flite -psdur`), as data."""

from __future__ import annotations

from engine.motion.phone_track import Phone, parse_flite

LEAD_S, TAIL_S = 0.5, 0.8  # silence put around each


def padded(phones: list[Phone]) -> list[Phone]:
    moved = [Phone(p.name, p.start_s + LEAD_S, p.end_s + LEAD_S) for p in phones]
    first, last = moved[0], moved[-1]
    assert first.name == last.name == "SIL"
    moved[0] = Phone("SIL", 0.0, first.end_s)
    moved[-1] = Phone("SIL", last.start_s, last.end_s + TAIL_S)
    return moved


def tracks() -> dict[str, list[Phone]]:
    """Sentence -> phones, with silence around."""
    return {text: padded(parse_flite(durations)) for text, durations in FLITE.items()}


FLITE: dict[str, str] = {
    "Please bring my big blue umbrella.": (
        "pau:0.195 p:0.280 l:0.316 iy:0.491 z:0.607 b:0.675 r:0.735 ih:0.789 ng:0.881 m:0.975 "
        "ay:1.107 b:1.169 ih:1.242 g:1.367 b:1.430 l:1.471 uw:1.521 ax:1.553 m:1.617 b:1.661 "
        "r:1.698 eh:1.730 l:1.844 ax:1.907 pau:2.093"
    ),
    "We were away a year ago, you know.": (
        "pau:0.142 w:0.250 iy:0.336 w:0.420 er:0.561 ax:0.617 w:0.759 ey:0.950 ax:1.002 "
        "y:1.115 ih:1.190 r:1.248 ax:1.371 g:1.444 ow:1.642 pau:1.727 y:1.879 uw:1.920 "
        "n:2.035 ow:2.234 pau:2.451"
    ),
    "Bob put the pepper pot above my map.": (
        "pau:0.249 b:0.314 aa:0.455 b:0.515 p:0.591 uh:0.684 t:0.773 dh:0.825 ax:0.862 "
        "p:0.961 eh:1.045 p:1.134 er:1.238 p:1.345 aa:1.459 t:1.553 ax:1.591 b:1.698 ah:1.807 "
        "v:1.878 m:1.950 ay:2.139 m:2.174 ae:2.378 p:2.505 pau:2.590"
    ),
    "The quick brown fox jumps over the lazy dog.": (
        "pau:0.220 dh:0.254 ax:0.304 k:0.460 w:0.494 ih:0.546 k:0.628 b:0.716 r:0.751 "
        "aw:0.882 n:0.968 f:1.056 aa:1.138 k:1.202 s:1.297 jh:1.384 ah:1.433 m:1.482 p:1.563 "
        "s:1.634 ow:1.763 v:1.803 er:1.902 dh:1.940 ax:1.984 l:2.070 ey:2.252 z:2.347 "
        "iy:2.452 d:2.526 ao:2.587 g:2.662 pau:2.882"
    ),
    "She sells sea shells by the sea shore.": (
        "pau:0.159 sh:0.300 iy:0.383 s:0.488 eh:0.551 l:0.675 z:0.715 s:0.815 iy:0.856 "
        "sh:0.993 eh:1.065 l:1.156 z:1.237 b:1.260 ay:1.388 dh:1.461 ax:1.497 s:1.605 "
        "iy:1.699 sh:1.865 ao:1.993 r:2.121 pau:2.295"
    ),
    "Five very fine vans arrived before half past four.": (
        "pau:0.136 f:0.238 ay:0.464 v:0.545 v:0.644 eh:0.709 r:0.798 iy:0.886 f:0.998 "
        "ay:1.209 n:1.258 v:1.357 ae:1.561 n:1.664 z:1.730 er:1.873 ay:2.031 v:2.138 d:2.168 "
        "b:2.235 ih:2.307 f:2.467 ao:2.575 r:2.669 hh:2.737 ae:2.853 f:2.961 p:3.113 ae:3.333 "
        "s:3.441 t:3.499 f:3.617 ao:3.851 r:4.050 pau:4.281"
    ),
    "Who would choose to move the blue moon soon?": (
        "pau:0.250 hh:0.302 uw:0.442 w:0.538 uh:0.591 d:0.644 ch:0.774 uw:0.873 z:0.945 "
        "t:1.001 ax:1.041 m:1.099 uw:1.214 v:1.289 dh:1.359 ax:1.392 b:1.463 l:1.555 uw:1.647 "
        "m:1.726 uw:1.853 n:1.940 s:2.096 uw:2.197 n:2.283 pau:2.372"
    ),
    "Maybe, if my mother permits, I may remember. Well, maybe not.": (
        "pau:0.220 m:0.307 ey:0.489 b:0.573 iy:0.765 pau:0.985 ih:1.062 f:1.172 m:1.243 "
        "ay:1.418 m:1.533 ah:1.602 dh:1.635 er:1.711 p:1.858 er:1.923 m:2.036 ih:2.116 "
        "t:2.183 s:2.333 pau:2.553 ay:2.692 m:2.783 ey:2.922 r:2.984 ih:3.028 m:3.094 "
        "eh:3.198 m:3.315 b:3.381 er:3.489 pau:3.709 w:3.769 eh:3.994 l:4.111 pau:4.331 "
        "m:4.418 ey:4.600 b:4.685 iy:4.774 n:4.860 aa:5.056 t:5.206 pau:5.426"
    ),
    "How now brown cow, the boy enjoys his toys.": (
        "pau:0.162 hh:0.253 aw:0.475 n:0.529 aw:0.698 b:0.771 r:0.848 aw:0.975 n:1.048 "
        "k:1.120 aw:1.290 pau:1.480 dh:1.525 ax:1.559 b:1.646 oy:1.886 eh:1.947 n:2.020 "
        "jh:2.110 oy:2.290 z:2.389 hh:2.451 ih:2.515 z:2.567 t:2.654 oy:2.945 z:3.121 "
        "pau:3.265"
    ),
    "I think that this is the best time to leave the house.": (
        "pau:0.177 ay:0.320 th:0.488 ih:0.595 ng:0.684 k:0.746 dh:0.826 ae:0.943 t:1.036 "
        "dh:1.081 ih:1.162 s:1.265 ih:1.342 z:1.400 dh:1.468 ax:1.490 b:1.585 eh:1.722 "
        "s:1.875 t:1.937 t:2.037 ay:2.168 m:2.278 t:2.381 ax:2.419 l:2.542 iy:2.669 v:2.716 "
        "dh:2.762 ax:2.858 hh:2.934 aw:3.086 s:3.327 pau:3.514"
    ),
    "Hello, and welcome. My name is Alice, and I am pleased to meet you.": (
        "pau:0.254 hh:0.296 ax:0.341 l:0.420 ow:0.642 pau:0.787 ae:0.889 n:0.964 d:1.001 "
        "w:1.092 eh:1.211 l:1.288 k:1.348 ax:1.420 m:1.511 pau:1.670 m:1.723 ay:1.902 n:1.970 "
        "ey:2.132 m:2.194 ih:2.245 z:2.337 ae:2.497 l:2.597 ax:2.697 s:2.915 pau:3.065 "
        "ae:3.147 n:3.186 d:3.208 ay:3.369 ae:3.469 m:3.539 p:3.705 l:3.767 iy:3.914 z:3.982 "
        "d:4.003 t:4.062 ax:4.131 m:4.234 iy:4.306 t:4.398 y:4.490 uw:4.603 pau:4.719"
    ),
    "Could you please tell me what the time is?": (
        "pau:0.220 k:0.346 uh:0.411 d:0.466 y:0.526 uw:0.648 p:0.764 l:0.824 iy:0.967 z:1.049 "
        "t:1.123 eh:1.231 l:1.278 m:1.344 iy:1.463 w:1.520 ah:1.556 t:1.619 dh:1.645 ax:1.695 "
        "t:1.797 ay:1.937 m:1.988 ih:2.061 z:2.174 pau:2.394"
    ),
}
