"""Subtitles made to be slow, large or wrong: seeded, so that a finding can be repeated."""

import random

HEADS = {
    ".srt": "1\n00:00:01,000 --> 00:00:02,000\n",
    ".vtt": "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n",
    ".ass": (
        "[Script Info]\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,"
    ),
    ".json": '[{"start": 1, "end": 2, "line": "',
}
TAILS = {".json": '"}]'}

PIECES = (
    *("{\\", "{", "}", "<", ">", "<i", "<i>", "</", "{\\an8}", "\\N", "\\h", "&amp;", "&#"),
    *("\n", "\n\n\n", "\n\n\n\nx", "\r\n", "\r", "\t", " ", "1", "1\n", "-->", " --> ", "WEBVTT"),
    *("00:00:01,000 --> 00:00:02,000\n", "99:99:99,999", "00:01.000 --> 00:02.000\n", "NOTE"),
    *("Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,", "Comment:", "Style: a,b,c", "[Fonts]"),
    *(
        "{1}{2}", "[1][2]", "<br/>", "\0", "\ufeff", "\u202e", "\ud7ff", "é", "字", "😀", '"', "[",
        "{",
    ),
)  # fmt: skip


def repeated(piece: str, suffix: str, size: int) -> bytes:
    """One cue that consists of ``piece`` over and over."""
    body = piece * (size // len(piece))
    return (HEADS[suffix] + body + TAILS.get(suffix, "")).encode("utf-8", "surrogatepass")


def mixed(chance: random.Random, size: int) -> tuple[str, bytes]:
    """A file of any suffix with random pieces, runs and encodings."""
    suffix = chance.choice(tuple(HEADS))
    text = chance.choice(["", HEADS[suffix], chance.choice(tuple(HEADS.values()))])
    while len(text) < size:
        text += chance.choice(PIECES) * chance.choice([1, 1, 2, 10, 1000])
    text += chance.choice(["", TAILS.get(suffix, "")])
    encoding = chance.choice(["utf-8", "utf-8", "utf-8", "utf-16", "utf-16-be", "utf-32"])
    data = bytearray(text.encode(encoding))
    for _ in range(chance.choice([0, 0, 3, 50])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return suffix, bytes(data[: chance.choice([size, len(data)])])
