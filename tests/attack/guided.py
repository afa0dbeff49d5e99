"""Coverage-guided texts: ``python guided.py TARGET SECONDS SEED CRASHES`` (needs atheris).

The fuzzer sees which lines of longtake a text reaches, and goes on from those that reach new ones.
It ends at the first text that fails, which is kept; the campaign starts it again.
"""

import sys
import tempfile
import traceback
from pathlib import Path

import atheris

# what is imported in this block reports its coverage
with atheris.instrument_imports(include=["longtake"]):
    from attack.texts import TARGETS, attempt, keep

LARGEST = 4096
"""Bytes; long inputs are the business of ``texts.py``."""


def main(name: str, seconds: int, seed: int, crashes: Path) -> None:
    """Fuzz the files of one target until the time is up or one of them fails."""
    target = TARGETS[name]
    names = tuple(target.files)
    folder = Path(tempfile.mkdtemp(prefix="longtake-guided-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, file in enumerate(names):
        (corpus / f"seed{number}").write_bytes(bytes([number]) + target.files[file].encode())

    def one(data: bytes) -> None:
        victim = names[data[0] % len(names)] if data else names[0]
        files = {file: text.encode() for file, text in target.files.items()}
        files[victim] = data[1:]
        why = attempt(target, files)
        if why:
            keep(crashes / f"{name}-guided-{seed}.json", name, files, why)
            raise RuntimeError(why)

    options = (f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={LARGEST}", "-timeout=20")
    prefix = f"-artifact_prefix={folder}/"
    words = folder / "words"
    words.write_text(_dictionary(target.words))
    atheris.Setup([sys.argv[0], *options, prefix, f"-dict={words}", str(corpus)], one)
    atheris.Fuzz()


def _dictionary(words: tuple[str, ...]) -> str:
    """Words that the fuzzer may insert, as libFuzzer writes them."""
    lines = []
    for word in (*words, "null", "true", "1e400", "[]", "{}", '""', "\\ud800", "\r\n\r\n"):
        spelt = "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))
        if word:
            lines.append(f'"{spelt}"')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]).absolute())
    except Exception:
        traceback.print_exc()
        raise
