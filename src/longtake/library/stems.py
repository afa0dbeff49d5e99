"""Words in the form in which the full-text index keeps them: ``wash`` for ``washes``."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Collection, Sequence

from longtake.algorithms.lexical import STOP

TOKENIZE = "porter unicode61 remove_diacritics 2"
"""SQLite's tokenizer: Porter's stems (1980), without accents."""
MOST = 50_000
"""Words whose stems are kept in memory."""
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a text, without those that say nothing unless there are no others."""
    words = _WORD.findall(text.casefold())
    return [word for word in words if word not in STOP] or words


class Stemmer:
    """Asks SQLite's tokenizer through a table in memory; may be used from several threads."""

    def __init__(self) -> None:
        base = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        base.execute(f"CREATE VIRTUAL TABLE words USING fts5 (word, tokenize='{TOKENIZE}')")
        base.execute("CREATE VIRTUAL TABLE stems USING fts5vocab ('words', 'instance')")
        self._base = base
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def stems(self, text: str) -> list[str]:
        """The stems of the words of a text, in order."""
        return self.stems_of([text])[0]

    def stems_of(self, texts: Sequence[str]) -> list[list[str]]:
        """The same for several texts, which takes less time than one after another."""
        worded = [words_of(text) for text in texts]
        needed = {word for words in worded for word in words}
        with self._lock:
            if len(self._known) > MOST:
                self._known = {}
            self._learn(needed - self._known.keys())
            known = self._known
            return [[stem for word in words for stem in known[word]] for words in worded]

    def _learn(self, words: Collection[str]) -> None:
        if not words:
            return
        listed = sorted(words)
        self._base.execute("BEGIN")
        self._base.executemany(
            "INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(listed, start=1)
        )
        found: list[list[str]] = [[] for _ in listed]
        # a word may be several to the tokenizer
        for row, stem in self._base.execute('SELECT doc, term FROM stems ORDER BY doc, "offset"'):
            found[row - 1].append(stem)
        self._base.execute("ROLLBACK")
        for word, stems in zip(listed, found, strict=True):
            self._known[word] = tuple(stems)
