"""Classifies questions by their words.

- :func:`asks_for` decides how a question is answered: the first rule that matches gives one of the
  kinds in ``types.QuestionKind``;
- :func:`mentioned` extracts the words whose moments or occurrences are asked for;
- :func:`answer_type` gives the type of the answer (a number, a colour, a name), and :func:`holds`
  whether a text contains one;
- :func:`asks_about_words` recognises questions about what is said or written;
- :func:`negated` recognises questions that ask for the option that does *not* hold;
- :func:`is_question` tells questions from other remarks, and :func:`in_full` completes one that
  refers to the question before it.
"""

from __future__ import annotations

import re
from typing import Literal

from longtake.algorithms import lexical
from longtake.types import Question, QuestionKind


def _words(*phrases: str) -> re.Pattern[str]:
    """Matches any of these words or phrases, regardless of case; each may be a pattern."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


COUNTING = _words("how many", "how often", "number of", "count")
ORDER = _words(
    *("before", "after", "when", "first", "last", "finally", "next", "earlier", "later"),
    *("order", "sequence", "chronological"),
)
READING = _words(
    *("text", "signs?", "subtitles?", "captions?", "written", "writes?", "reads?", "words?"),
    *("letters?", "titles?", "labels?", "logos?", "scoreboard"),
)
HEARING = _words(
    *("says?", "said", "tells?", "told", "hear", "hears", "heard", "sounds?", "music", "songs?"),
    *("sings?", "voice", "speaks?", "spoken", "talks?", "mentions?", "mentioned", "narrator"),
    "audio",
)
WHOLE = re.compile(
    r"\b(?:mostly|mainly|overall|in general|main|theme|topic|purpose|summar\w+|gist)\b"
    r"|\babout\s*\?",
    re.IGNORECASE,
)
# "Who leaves?" asks for one thing; "the man who leaves" must be found before the rest
NESTED = re.compile(r"(?<=\w )(?:who|whom|whose|that|which|where)\b", re.IGNORECASE)
STRETCH = _words("minutes?", "at the (?:beginning|start|end)", "half")


def asks_about_words(text: str) -> bool:
    """Whether a question is about something that is said or written."""
    # the gist, a number or a stretch of the film takes more than the words of one moment
    if any(pattern.search(text) for pattern in (COUNTING, WHOLE, STRETCH)):
        return False
    return any(pattern.search(text) for pattern in (READING, HEARING))


def may_be_visible(question: Question) -> bool:
    """Whether pictures may answer a question: not one about words, reasons or opinions."""
    return asks_for(question) in ("fact", "who", "count") and not asks_about_words(question.text)


def asks_about_speech(text: str) -> bool:
    """Whether a question is about something that is said, and not written."""
    return asks_about_words(text) and READING.search(text) is None


_ASKS = re.compile(
    r"(?:(?:and|but|so|then|please|now)\b\W*)*"
    r"(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|will"
    r"|would|has|have|had|should|list|find|show|give|name|count|describe|explain|summari[sz]e)\b",
    re.IGNORECASE,
)
_CONVERSATION = re.compile(r"\n\(Earlier in this conversation: (Q: .*)\)\s*\Z", re.DOTALL)
_REFERS = _words(*("it", "its", "he", "she", "they", "him", "her", "his", "their", "them", "then"))


def is_question(text: str) -> bool:
    """Whether a text asks or asks for something: "thanks" and "tell me a joke" do not."""
    return "?" in text or _ASKS.match(text.strip()) is not None


def in_full(text: str) -> str:
    """A question without the conversation that it comes with.

    The last question that names something precedes it if it refers to that: "and then?".
    """
    conversation = _CONVERSATION.search(text)
    if conversation is None:
        return text
    own = text[: conversation.start()].strip()
    earlier = re.findall(r"^Q: (.+)$", conversation[1], re.MULTILINE)
    naming = [each for each in earlier if lexical.content_words(each) and is_question(each)]
    refers = _REFERS.search(own) is not None or not lexical.content_words(own)
    return f"{naming[-1]} {own}" if naming and refers and is_question(own) else own


# "which" must come first: "Why does the man not eat?" asks for what is so
_NEGATED = re.compile(
    r"\bwhich\b[^?.]*?(?:\bnot\b|n['’]t\b|\bnever\b|\bincorrect\b|\bfalse\b|\buntrue\b)"
    r"|\bexcept\b",
    re.IGNORECASE,
)
# in capitals it is the point of the question, wherever it stands
_NOT_IN_CAPITALS = re.compile(r"\bNOT\b")


def negated(text: str) -> bool:
    """Return whether the question asks for the option that does *not* hold: "… is NOT shown?"."""
    return bool(_NEGATED.search(text) or _NOT_IN_CAPITALS.search(text))


_MENTIONED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"[\"“](?P<words>[^\"”]+)[\"”]",
        r"\b(?:mentions?|occurrences?|uses?) of (?P<words>.+)",
        r"\bit (?:is )?(?:said|mentioned) that (?P<words>.+)",
        # "every time that Creative Commons is mentioned"
        r"\b(?:times?|moments?|places?|where) (?:that |when |where )?(?P<words>.+?)"
        r" (?:is|are|was|were)(?: \w+)? (?:mentioned|said|named|discussed|talked about|used)\b",
        # "when is the word copyright first mentioned"
        r"\b(?:is|are|was|were|does|do) (?P<words>.+?)(?: (?:first|last|ever))?"
        r" (?:mentioned|said|named|discussed|spoken of|talked about|used|occur|appear)\b",
        # "when does she say that ventures fail", "how often do they talk about money"
        r"\b(?:says?|said|mention(?:s|ed)?|talk(?:s|ed)?|speaks?|spoke|tells?|told|ask(?:s|ed)?"
        r"|explain(?:s|ed)?|names?|discuss(?:ed)?|uses?|suggest(?:s|ed)?|propose[sd]?"
        r"|recommend(?:s|ed)?|thinks?|thought|point(?:s|ed)? out)"
        r" (?:that |about |of |for |if |whether )?(?P<words>.+)",
    )
]
_NOUN = re.compile(
    r"^(?:(?:the|an?|his|her|its|their) )?(?:(?:words?|terms?|phrases?|names?) )?", re.IGNORECASE
)
# "how many times an hour" asks for a rate that somebody mentions, not for a count
_TIMES = _words(
    "how often",
    "how many (?:times(?! (?:an?|per|each|every) )|mentions|occurrences)",
    "number of times",
    "count",
)


def mentioned(text: str) -> str:
    """The words whose moments or occurrences a question asks for; empty if it names none.

    They are those of "how often is the word *copyright* mentioned" and of "when does she say that
    *ventures fail*"; "how many people does she say there are" asks for no occurrences.
    """
    if COUNTING.search(text) and not (_TIMES.search(text) or _WHO.match(text)):
        return ""
    for pattern in _MENTIONED:
        match = pattern.search(text.strip(" ?.!"))
        if match is not None:
            return _NOUN.sub("", match["words"].strip(" ,'"))
    return ""


_EVERY = _words(
    "(?:every|each|all) (?:time|film|video|place|occurrence|scene|moment|mention)s?",
    "list (?:all|every|each|the)",
    "how (?:many|much) (?:films|videos|times)",
    "how often",
    "which (?:films|videos)",
    "in (?:all|how many) (?:the )?(?:films|videos)",
)
_MOMENTS = _words("(?:every|each|all)(?: the)? (?:times?|moments?|occasions?)")
_LIST = re.compile(
    r"(?:please )?(?:list\b|(?:find|show|give|name|tell|collect|get)\b.*\b(?:every|each|all)\b"
    r"|(?:every|each|all) (?:times?|mentions?|occurrences?|moments?|places?)\b"
    r"|(?:in )?which (?:films|videos)\b)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"(?:when (?:is|are|was|were|do|does|did|has|have)"
    r"|(?:at (?:what|which)|what is the|what was the) (?:(?:first|last) )?"
    r"(?:times?|points?|minutes?|moments?))\b",
    re.IGNORECASE,
)
_WHO = re.compile(r"(?:who|whom|whose|which (?:person|speaker))\b", re.IGNORECASE)
_ACCOUNT = _words(
    *(r"summar\w*", "describe", r"explain\w*", r"discuss\w*", "why", "reasons?", "opinions?"),
    *("attitudes?", "views?", "ideas?", "think", "thought", "feel", "felt", r"disagree\w*"),
    *("experiences?", "problems?", "questions?"),
    *(r"propos\w*", r"suggest\w*", r"recommend\w*", r"conclu\w*", r"decid\w*", r"evaluat\w*"),
    r"(?:say|said|says|talk\w*|speak|mention\w*|tell|told) (?:\w+ )?(?:about|on|of|regarding)",
    "how (?:did|do|does|was|were|would|should|is|are|will|can|could)",
)
_GENERIC = frozenset(
    [
        *("film", "video", "clip", "movie", "talk", "lecture", "meeting", "recording", "story"),
        *("main", "theme", "topic", "subject", "purpose", "gist", "point", "idea", "whole"),
        *("entire", "overall", "mostly", "mainly", "summarize", "summarise", "summary", "happens"),
        *("happen", "describe", "explain", "tell", "say", "said", "discuss", "discussed", "please"),
    ]
)
"""Words of questions that name nothing specific."""


def asks_for(question: Question) -> QuestionKind:
    """The kind of a question: the given one, or else the one that its words suggest."""
    text = question.text.strip()
    if question.kind is not None:
        return question.kind
    if _LIST.match(text):
        return "list"
    if COUNTING.search(text) and not _WHO.match(text):
        return "count"
    if WHOLE.search(text) and not set(lexical.content_words(text)) - _GENERIC:
        return "about"
    # "when was it built?" asks for a date that somebody mentions, not for a moment of the film
    if _WHEN.match(text) and mentioned(text):
        return "when"
    if _WHO.match(text):
        return "who"
    return "account" if _ACCOUNT.search(text) else "fact"


def asks_for_words(question: Question) -> str:
    """The words whose occurrences or moments answer an open question; empty if others do."""
    if question.options or asks_for(question) not in ("list", "count", "when"):
        return ""
    words = mentioned(question.text)
    if not words and question.kind and "?" not in question.text:
        return question.text  # --as count "creative commons"
    return words


def asks_for_moments(question: Question) -> bool:
    """Whether an open question asks for all moments of a kind, and not for words that it names."""
    if question.options or asks_for(question) not in ("list", "count"):
        return False
    given = question.kind is not None or _MOMENTS.search(question.text) is not None
    return given and not asks_for_words(question)


# verbs of speaking that "how often do they …" uses for what happens, not for words
_WHO_TOLD = re.compile(
    r"who (?:\w+ )?(?:admit|agree|announce|believe|compare|complain|concede|conclude|describe|doubt"
    r"|fear|guess|hope|introduce|joke|list|offer|recall|remind|want|warn|wonder|worrie)(?:s|es|d|ed|ted)?"
    r" (?:that |about |of |if |whether |to )?(?P<words>.+)",
    re.IGNORECASE,
)
_WHO_ASKED = re.compile(r"\w+ (?:\w+ )?(?:asks?|asked|wonder(?:s|ed)?)\b", re.IGNORECASE)


def asks_who_said(question: Question) -> str:
    """What was said, if an open question asks who said it; else empty."""
    if question.options or asks_for(question) != "who":
        return ""
    told = _WHO_TOLD.match(question.text.strip(" ?.!"))
    return mentioned(question.text) or (told["words"] if told else "")


def asks_who_asked(question: Question) -> bool:
    """Whether what somebody said is a question: "Who asked what it costs?"."""
    return _WHO_ASKED.match(question.text) is not None


def asks_for_every(question: Question) -> bool:
    """Whether a question to a library is put to all films, since it asks for every occurrence."""
    return question.kind in ("list", "count") or _EVERY.search(question.text) is not None


_MAYBE_EVERY = _words(
    *("every", "each", "all", "any", "list", "count", "many", "often", "times", "films", "videos")
)


def may_ask_for_every(text: str) -> bool:
    """Whether a question may ask for every occurrence, as a model has classified it."""
    return _MAYBE_EVERY.search(text) is not None


AnswerType = Literal["number", "colour", "name"]

CERTAIN: frozenset[AnswerType] = frozenset({"number", "colour"})
"""Types that an answer must contain. Names are not among them because they are hard to recognise;
they only make a passage more promising."""

# the first that matches counts: "what is the number of the user" asks for a number
_ANSWER_TYPES: dict[AnswerType, re.Pattern[str]] = {
    "colour": _words(r"(?:what|which)\s+colou?rs?"),
    "number": _words(
        r"how\s+(?:many|much|old|tall|heavy|far)",
        r"(?:what|which)\s+year",
        r"(?:number|percentage)\s+of",
    ),
    "name": _words(
        *("who", "whom", "whose", "where", "name", "named"),
        r"(?:what|which)\s+(?:city|town|country|state|company|person|band|foundation)",
    ),
}
_NUMBER = re.compile(
    rf"\d|\b(?:{'|'.join([*lexical.NUMBERS, *lexical.SCALES])}"
    r"|dozens?|half|once|twice|none|nothing|nobody|free|no)\b",
    re.IGNORECASE,
)
_COLOUR = _words(
    *("black", "white", "gr[ea]y", "red", "green", "blue", "yellow", "orange", "purple", "violet"),
    *("pink", "brown", "beige", "turquoise", "teal", "cyan", "magenta", "silver", "gold", "golden"),
    *("colou?rless", "transparent"),
)
_SENTENCE = re.compile(r"[.!?:/]\s+")
_WORD = re.compile(r"[^\W\d_]+")


def answer_type(question: str) -> AnswerType | None:
    """The type of the answer to a question; ``None`` if its words do not determine it."""
    for name, pattern in _ANSWER_TYPES.items():
        if pattern.search(question):
            return name
    return None


def holds(wanted: AnswerType, text: str) -> bool:
    """Whether a text contains something of that type."""
    if wanted == "number":
        return _NUMBER.search(text) is not None
    if wanted == "colour":
        return _COLOUR.search(text) is not None
    return any(_names(sentence) for sentence in _SENTENCE.split(text))


def _names(sentence: str) -> bool:
    """Whether a sentence contains a rare capitalised word after its first word.

    The first word counts if all words are capitalised, as in credits.
    """
    words = _WORD.findall(sentence)
    titled = [word[0].isupper() and len(word) > 1 for word in words]
    first = 0 if len(words) > 1 and all(titled) else 1
    capitalised = [words[place] for place in range(first, len(words)) if titled[place]]
    # rare enough to be a name
    return any(lexical.idf(word.lower()) >= 1.2 for word in capitalised)
