"""Language codes as containers write them, and whether a listener understands them."""

from __future__ import annotations

from longtake.perception.protocols import Listener

# ISO 639-2 codes (both forms) of languages that films are tagged with, and their two-letter codes
_TWO = {
    "ara": "ar",
    "ben": "bn",
    "bul": "bg",
    "cat": "ca",
    "ces": "cs",
    "cze": "cs",
    "chi": "zh",
    "zho": "zh",
    "dan": "da",
    "deu": "de",
    "ger": "de",
    "dut": "nl",
    "nld": "nl",
    "ell": "el",
    "gre": "el",
    "eng": "en",
    "est": "et",
    "fas": "fa",
    "per": "fa",
    "fin": "fi",
    "fra": "fr",
    "fre": "fr",
    "heb": "he",
    "hin": "hi",
    "hrv": "hr",
    "hun": "hu",
    "ind": "id",
    "ita": "it",
    "jpn": "ja",
    "kor": "ko",
    "lav": "lv",
    "lit": "lt",
    "may": "ms",
    "msa": "ms",
    "nor": "no",
    "nob": "no",
    "pol": "pl",
    "por": "pt",
    "ron": "ro",
    "rum": "ro",
    "rus": "ru",
    "slk": "sk",
    "slo": "sk",
    "slv": "sl",
    "spa": "es",
    "srp": "sr",
    "swe": "sv",
    "tam": "ta",
    "tel": "te",
    "tgl": "tl",
    "tha": "th",
    "tur": "tr",
    "ukr": "uk",
    "urd": "ur",
    "vie": "vi",
}
_UNKNOWN = {"", "und", "mul", "mis", "zxx", "unknown"}


def two_letters(code: str | None) -> str | None:
    """``en`` for ``eng``, ``en-US`` and ``EN``; ``None`` if the code says nothing (``und``)."""
    short = (code or "").strip().lower().replace("_", "-").partition("-")[0]
    if short in _UNKNOWN:
        return None
    return _TWO.get(short, short)


def understands(listener: Listener, code: str | None) -> bool:
    """Whether the listener knows a declared language; true if the code says nothing."""
    language = two_letters(code)
    return language is None or language in listener.languages
