"""Pieces of replies for :mod:`support.replyfuzz`, one a line; ``⏎`` is a line break.

``<one>`` and ``<two>`` are letters of two options, ``<own>`` and ``<other>`` the texts of those
options, and ``<beyond>`` is a letter that is no option.
"""

from __future__ import annotations


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.replace("⏎", "\n") for line in text.strip("\n").split("\n"))


OPTIONS = _lines("""
A man in a hat
the red dog
the dog
a dog
yes
no
3 cups
two cups
12
I am here
both A and C
option C
B side of the record
none of the above
the answer is unknown
at the station
a cup, a map and a lamp
it's broken
the "STOP" sign
nobody
walks away
Zürich
""")
"""Texts of options, some of which look like letters, statements or numbers."""

REASONS = _lines("""

it barks at the man
The sign reads STOP
she says "go" and leaves
it's the dog's ball
at 00:01:30 the man, who wears a hat, sits
first he runs; then he stops
Because of the light.
nothing else fits
it could be <other>, but the light is off
unlike <other>, it moves
option <two> is wrong
not <two>
the screen shows {"choice": "<two>"}
the sign says choice: <two>
someone shouts that the answer is <two>
they say "<other>" twice
the list reads:⏎choice: <two>⏎and more
a⏎b⏎c
see above [1, 2]
score 3 of 5
A cup and A hat
\\frac{a}{b}
Ein Hund bellt – laut…
""")
"""Explanations that speak for ``<one>``, some of them of ``<two>``."""

ANNOUNCED = _lines("""
<one>
(<one>)
<own>
<one> <own>
<one>. <own>
Option <one>
Answer: <one>
Answer: <one>. <own>
Final answer: <one>
**Final answer:** **<one>**
\\boxed{<one>}
The answer is <one>.
The best option is <one>
The correct answer is (<one>) <own>.
So the answer must be <one>.
I would choose option <one>.
""")

SPELT = _lines("""
<one>
<one>
<one>
<one>
<one>
<one>
(<one>)
<one>.
**<one>**
<one>. <own>
<one>) <own>
<one>: <own>
<one> <own>
<own>
Option <one>
""")

CONTRADICTING = _lines("""
<one> or <two>
<one>/<two>
<one> and <two>
(<one>) or (<two>)
<one>, <two>
<one>? <two>?
<one>. No wait, <two>.
<one>. <other>
Answer: <one>. <other>
Answer: <one> or <two>
The answer is (<one>) <other>.
The answer is <one>. No, the answer is <two>.
The answer is <one>? No, <two>.
The answer is not <one>.
The answer <one> is wrong.
If the answer is <one>, he runs.
\\boxed{<one>} \\boxed{<two>}
choice: <one>⏎choice: <two>
choice: <one> or <two>
<choice><one></choice><choice><two></choice>
| choice |⏎|---|⏎| <one> |⏎| <two> |
{"choice": "<one> or <two>"}
{"choice": ["<one>", "<two>"]}
{"choice": "<one>" or "<two>"}
{"choice": "<one>"} {"choice": "<two>"}
{"choice": "<one>", "choice": "<two>"}
{"choice": "<one>", "answer": "<two>"}
{"choice": "<one>"}⏎The answer is <two>.
{"reason": "<one>", "choice": "<two> or <one>"}
{"properties": {"choice": {"enum": ["<one>"]}}}
<beyond>
Answer: <beyond>
The answer is <beyond>.
{"choice": "<beyond>"}
I do not know.
The film does not show it.
A man
{}
{"reason": "it barks"}

""")
"""Replies that name two options, none, or one that there is not."""

CUT_SHORT = _lines("""
<one>
<one> or
(<one>) or
The answer is <one>
The answer is <one> o
The answer <one> is
Answer: <one>
choice: <one>
<choice><one>
{"choice": "<one>
{"choice": "<one> o
{"choice": "<one>" or
{"reason": "so", "choice": <one>
{"reason": "the sign says choice: <one>
reason: the list reads⏎choice: <one>⏎and then
""")
"""Replies cut off where another option may have been about to be named."""

BEFORE = _lines("""



Sure!
Here is my reply:⏎⏎
I looked at all {frames}.⏎
Let me see.⏎⏎
Based on the notes,
**Reply**⏎⏎
""")
"""Prose before a reply …"""

AFTER = _lines("""



⏎
⏎⏎I hope this helps!
 Let me know if you need more.
⏎⏎---⏎
 👍
""")
"""… and after it."""

PROSE = _lines("""


The man waves.
A dog barks.⏎⏎
He holds a cup, and then he leaves.⏎
I see a lamp.⏎
""")

CAPTIONS = _lines("""
a dog barks
A man, in a hat, waves
the sign reads "OPEN"
two cups on a table
""")
