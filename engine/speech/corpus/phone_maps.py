"""Other phone alphabets to ARPAbet: IPA as espeak-ng writes it, and festival's voice sets.

The maps are by hand and lossy (front rounded vowels become UW/UH, trills R, uvular R HH): what
counts is that the lip class is right. Knows nothing of audio.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from engine.speech.encoded import PHONE_INDEX

_IPA_TABLE: Final = """
tʃ CH|dʒ JH|tɕ CH|dʑ JH|ts T S|dz D Z|pf P F|aɪ AY|aʊ AW|eɪ EY|oʊ OW|ɔɪ OY|əʊ OW|ɛɪ EY|ɔø OY
œy AH UW|ɔy OY|au AW|ai AY|ei EY|eu EH UW|oi OY|r̝ ZH|p P|b B|t T|d D|k K|ɡ G|g G|q K|f F|v V|θ TH
ð DH|s S|z Z|ʃ SH|ʒ ZH|ɕ SH|ʑ ZH|ʂ SH|ʐ ZH|x HH|χ HH|h HH|ɦ HH|ɣ G|β B|m M|n N|ɲ N|ŋ NG|ɱ M
l L|ɫ L|ɭ L|ʎ L|ɬ L|r R|ɾ R|ɹ R|ɻ R|ʁ HH|ʀ HH|j Y|ʝ Y|w W|ɥ W|ʋ V|c K|ɟ G|ɸ F|ɖ D|ʈ T|ɳ N|i IY|ɪ IH
ᵻ IH|ɨ IH|y UW|ʏ UH|e EH|ɛ EH|æ AE|a AA|ɑ AA|ɒ AO|ɐ AH|ʌ AH|ə AH|ɘ AH|ɜ ER|ɚ ER|ɝ ER|ɞ ER
ɔ AO|o OW|ɤ AH|ʊ UH|u UW|ʉ UW|ɯ UH|ɵ UH|ø UH|œ UH
"""
IPA: Final[dict[str, list[str]]] = {
    entry.split(" ", 1)[0]: list(entry.split(" ", 1)[1].split())
    for line in _IPA_TABLE.split("\n")
    for entry in line.split("|")
    if " " in entry
}
_LONGEST: Final = max(map(len, IPA))
_MARKS: Final = str.maketrans("", "", "ˈˌːˑ_-ʲʰʷˠ̪̩̯͡.ʔ' ̃̊̈")


def ipa_to_arpabet(ipa: str) -> list[str]:
    """Greedy longest match; stress, length, nasality and unknown signs are dropped.

    ç is read as ʂ before decomposition, which would turn it into c and a mark.
    """
    signs = unicodedata.normalize("NFD", ipa.replace("ç", "ʂ")).translate(_MARKS)
    phones: list[str] = []
    at = 0
    while at < len(signs):
        for length in range(min(_LONGEST, len(signs) - at), 0, -1):
            if (found := IPA.get(signs[at : at + length])) is not None:
                phones += found
                break
        at += length
    return phones


# fmt: off
_ENGLISH: Final = dict(ax="AH", axr="ER", ix="IH", dx="D", el="L", em="M", en="N", hv="HH", nx="N",
                       pau="SIL", ssil="SIL", brth="SIL", h="HH")
_ITALIAN: Final = dict(
    a="AA", e="EH", E="EH", i="IY", o="OW", O="AO", u="UW", tS="CH", dZ="JH", ts="S", dz="Z",
    S="SH", J="N", ng="NG", nf="N", L="L", j="Y", w="W")
_CZECH: Final = {
    "a": "AA", "e": "EH", "i": "IY", "o": "OW", "u": "UW", "c": "S", "c~": "CH", "n*": "NG",
    "n~": "N", "r~": "ZH", "r~*": "SH", "s~": "SH", "z~": "ZH", "t~": "T", "d~": "D", "x": "HH",
    "h": "HH", "j": "Y", "dz": "Z", "dz~": "JH", "ou": "OW", "au": "AW", "eu": "UW", "m*": "M",
    "@": "AH", "%": "AH"}
_FINNISH: Final = {
    "a": "AA", "ae": "AE", "{": "AE", "e": "EH", "i": "IY", "o": "OW", "u": "UW", "y": "UW",
    "oe": "UH", "2": "UH", "7": "UH", "@": "AH", "N": "NG", "S": "SH", "h": "HH", "j": "Y",
    "v": "V"}
_CATALAN: Final = dict(
    ax="AH", a="AA", e="EH", E="EH", i="IY", o="OW", O="AO", u="UW", uax="AH", J="N", L="L",
    rr="R", r="R", S="SH", Z="ZH", tS="CH", dZ="JH", ts="S", dz="Z", y="Y", j="Y", w="W", N="NG",
    x="HH", T="TH", D="D", B="B", G="G", pau="SIL")
# fmt: on
FESTIVAL: Final[dict[str, dict[str, str]]] = {
    "en": _ENGLISH,
    "it": _ITALIAN,
    "cs": _CZECH,
    "fi": _FINNISH,
    "ca": _CATALAN,
}


def festival_to_arpabet(phone: str, language: str) -> str | None:
    """One festival segment name -> ARPAbet, SIL for pauses, None if unknown."""
    if phone in ("#", "_", "pau", "##", "0"):
        return "SIL"
    bare = phone.rstrip("1:0") if language != "en" else phone
    mapped = FESTIVAL[language].get(bare) or FESTIVAL[language].get(phone)
    mapped = mapped or bare.upper()
    return mapped if mapped in PHONE_INDEX else None
