"""Overlap of a text with keywords, weighted by rarity (VideoDetective, eq. 8 and appendix E.4.2).

For English. Word frequencies come from the tables of ``wordfreq`` and base forms from those of
``simplemma``, which are loaded when they are first needed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from longtake._util.timecode import SHORT_CLOCK

Z_LEX = 3.0
"""Sum of weights at which the overlap is complete."""
UNKNOWN_IDF = 1.5
"""Weight of a word that is not in the table: a name, or a misreading."""
_CLOCK = re.compile(rf"\[{SHORT_CLOCK}\]")
# letters and digits, with an apostrophe inside: "don't"
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ACRONYMS = re.compile(r"\b([A-Z]{2,})s\b")
STOP = frozenset(
    _WORD.findall(
        """
        a about above after again against all also am an and any are as at be because been before
        being below between both but by can could did do does doing done down during each either
        else ever every few for from further get gets got had has have having he her here hers
        herself him himself his how i if in into is it its itself just let may me might more most
        much must my myself neither no nor not now of off on once one only onto or other our ours
        ourselves out over own per rather same shall she should since so some somebody someone
        something such than that the their theirs them themselves then there these they this those
        through thus to too toward towards under until up upon us very was we were what when where
        whether which while who whom whose why will with within without would yet you your yours
        according film video clip scene
        """
    )
)
"""Words without content; the last ones occur in most questions about films."""
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
_ONES += " fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {word: value for value, word in enumerate(_ONES.split())}
NUMBERS |= {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
"""Numbers in words …"""
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
"""… and what they are multiplied by."""


def untimed(text: str) -> str:
    """Remove the bracketed times that precede lines of speech and on-screen text."""
    return " ".join(_CLOCK.sub(" ", text).split())


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, in lower case, each once and without times."""
    words_in_text = _WORD.findall(untimed(text).lower().replace("’", "'"))
    words = (word.removesuffix("'s") for word in words_in_text)
    return list(dict.fromkeys(word for word in words if word not in STOP))


def words_in_order(text: str) -> list[str]:
    """Return all words of a text in lower case, without times, possessives or plurals of LCDs."""
    plain = _ACRONYMS.sub(r"\1", untimed(text).replace("’", "'"))
    return [word.removesuffix("'s") for word in _WORD.findall(plain.lower())]


def same_word(one: str, other: str) -> bool:
    """Whether two words in lower case are the same, perhaps in another form: *fails*, *failing*.

    Only words with content have other forms, and forms begin alike: *best* is no form of *good*.
    """
    if one == other or one[:1] != other[:1] or one in STOP or other in STOP:
        return one == other
    pairs = [(a, b) for a in (_base(one), one) for b in (_base(other), other)]
    return any(a == b or _is_form(*sorted((a, b), key=len)) for a, b in pairs)


def _is_form(word: str, longer: str) -> bool:
    """Whether a word is a form of a shorter one that the table of base forms does not know."""
    # the table takes many of these for nouns; of common words, only "evening" is no such form
    if longer in (f"{word}ing", f"{word.removesuffix('e')}ing"):
        return longer != "evening"
    # names and new words have plurals too; "news" is a word of its own
    return longer == f"{word}s" and not _has_form(longer)


def _base(word: str) -> str:
    """The base form of a base form: *meetings* gives *meeting*, and that *meet*."""
    # the table takes these for nouns
    return {"thought": "think", "felt": "feel"}.get(word) or lemma(lemma(word))


def lemmas(texts: Iterable[str]) -> frozenset[str]:
    """Return the base forms of the content words of some texts, without stop words."""
    words = {word for text in texts for word in content_words(text)}
    # a content word may have a stop word as its base form
    return frozenset({lemma(word) for word in words} - STOP)


@lru_cache(maxsize=65536)
def lemma(word: str) -> str:
    """Return the base form of a word: ``wash`` for ``washes``."""
    if word.isdigit():
        return word
    from simplemma import lemmatize  # late: loads its table

    return str(lemmatize(word, lang="en")).lower()


def is_known(word: str) -> bool:
    """Whether the word is in the English table; few names are, and few misreadings."""
    # one known word in a hundred has exactly this weight, which matters to no caller
    return idf(word) != UNKNOWN_IDF


def is_misread(text: str) -> bool:
    """Whether print was misread: more than a third of its longer words are not English."""
    # shorter words are often abbreviations
    words = [word for word in content_words(text) if len(word) >= 4]
    unknown = [word for word in words if word.isascii() and not is_known(word)]
    # names give fewer unknown words than blurred print
    return len(unknown) > 1 / 3 * len(words)


@lru_cache(maxsize=65536)
def idf(word: str) -> float:
    """IDF(t) = clip((9 − zipf(t)) / 4, 0, 2), or 1.5 for unknown words.

    The Zipf value is log₁₀ of the occurrences per billion words: 7.7 for "the", 4 for "harbour".
    With a raw −log p, a single common word would reach Z.
    """
    from wordfreq import zipf_frequency  # late: loads 60 MB

    zipf = float(zipf_frequency(word, "en"))
    if zipf <= 0:  # not in the table
        return UNKNOWN_IDF
    return min(2.0, max(0.0, (9.0 - zipf) / 4.0))


@lru_cache(maxsize=65536)
def _has_form(word: str) -> bool:
    """Whether the table of base forms has a word."""
    from simplemma import is_known

    return bool(is_known(word, lang="en"))


def overlap(text: frozenset[str], keywords: frozenset[str], *, z: float = Z_LEX) -> float:
    """Eq. 8: min(1, Σ_{t ∈ e ∩ K} IDF(t) / Z), over lemmas."""
    shared = sorted(text & keywords)  # sorted, because the order of a sum shows in its last digits
    return min(1.0, sum(idf(word) for word in shared) / z)


_LANGUAGES = """
ar ara Arabic, bg bul Bulgarian, ca cat Catalan, cs cze ces Czech, da dan Danish,
de ger deu German, el gre ell Greek, en eng English, es spa Spanish, fa per fas Persian,
fi fin Finnish, fil tgl Filipino, fr fre fra French, he heb Hebrew, hi hin Hindi,
hu hun Hungarian, id ind Indonesian, is ice isl Icelandic, it ita Italian, ja jpn Japanese,
ko kor Korean, lt lit Lithuanian, lv lav Latvian, mk mac mkd Macedonian, ms may msa Malay,
nb nor nob Norwegian, nl dut nld Dutch, pl pol Polish, pt por Portuguese, ro rum ron Romanian,
ru rus Russian, sk slo slk Slovak, sl slv Slovenian, sv swe Swedish, th tha Thai, tr tur Turkish,
uk ukr Ukrainian, ur urd Urdu, vi vie Vietnamese, zh chi zho Chinese
"""
LANGUAGES: Mapping[str, str] = {
    code: entry.split()[-1] for entry in _LANGUAGES.split(",") for code in entry.split()[:-1]
}
"""Names of languages by the codes of ISO 639-1 and 639-2, which sound tracks are labelled with."""
_BY_SCRIPT = {
    "HANGUL": "Korean",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "CJK": "Chinese",
    "THAI": "Thai",
    "DEVANAGARI": "Hindi",
}
_BY_LETTERS = frozenset(_BY_SCRIPT.values()) | {"Vietnamese"}
"""Recognised by script, or not at all because ``wordfreq`` would need another package."""
SAMPLE = 1000
"""Letters that suffice to know a language: each word is looked up in every language."""
_ENGLISH = frozenset(["the", "what", "who", "when", "where", "which", "how", "why", "does"])


def language_of(text: str) -> str:
    """The name of the language of a text; empty if that is unsure, as for fewer than three words.

    A text is in the language in which its words are most frequent, if they are ten times as
    frequent (1 on the scale of Zipf) as in the next one. Only the beginning of a text is looked at.
    """
    text = text[:SAMPLE]
    scripts = [unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha()]
    # Japanese mixes three scripts, and kana are in no other language
    for script, language in _BY_SCRIPT.items():
        if scripts.count(script) > len(scripts) / 4:
            return language
    words = _WORD.findall(untimed(text).lower())
    if len(words) < 3:
        return ""
    if _ENGLISH.intersection(words):
        return "English"  # loading the tables of all languages takes a second
    from wordfreq import available_languages, zipf_frequency

    scores = []
    for code in available_languages("small"):
        if LANGUAGES.get(code, "Hindi") not in _BY_LETTERS:
            total = sum(zipf_frequency(word, code, "small") for word in words)
            scores.append((total / len(words), LANGUAGES[code]))
    (best, language), (second, _) = sorted(scores, reverse=True)[:2]
    return language if best >= second + 1 else ""
