"""Run as a program: carry out commands in one process and report every attempt to reach a network.

``python watched.py REPORT COMMANDS [SECONDS]``: COMMANDS is a JSON file with one list of arguments
per command, SECONDS how long the process lives afterwards. The report is JSON: exit codes and
attempts.
Native code does not pass Python's audit hooks, so the test also runs this program under strace.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

REACHING = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
LOCAL = ("127.0.0.1", "::1", "localhost", "", None)
SERVING = 2.0
"""Seconds after which a command that serves is interrupted."""

attempts: list[str] = []


def note(event: str, arguments: tuple[object, ...]) -> None:
    """Remember an address outside this machine."""
    if event not in REACHING:
        return
    address = arguments[-1] if event in ("socket.connect", "socket.sendto") else arguments[0]
    host = address[0] if isinstance(address, tuple) else address
    # a path is the address of a Unix socket, by which processes of this machine talk
    if host not in LOCAL and not str(host).startswith("/"):
        attempts.append(f"{event} {address}")


def interrupt(ended: threading.Event) -> None:
    """Interrupt until the command has ended: a server that is still starting may miss the first."""
    while not ended.wait(SERVING):
        os.kill(os.getpid(), signal.SIGINT)


def main(report: Path, commands: Path, seconds: float) -> None:
    """Carry out the commands, wait, and write the report."""
    sys.addaudithook(note)
    # a shell that runs the tests in the background has its children ignore interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from longtake import cli

    codes = []
    for arguments in json.loads(commands.read_text()):
        ended = threading.Event()
        if "serve" in arguments[:2]:
            threading.Thread(target=interrupt, args=(ended,), daemon=True).start()
        codes.append(cli.run(arguments))
        ended.set()
    time.sleep(seconds)
    report.write_text(json.dumps({"codes": codes, "attempts": attempts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
