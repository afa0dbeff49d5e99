"""httpx without its command line.

``import httpx`` also imports its command line, with rich and pygments: a twentieth of a second in
every command that asks a model.
"""

from __future__ import annotations

import ssl
import sys
from functools import cache

_COMMAND_LINE = "httpx._main"

# a module that is None cannot be imported, which httpx expects where rich is not installed
_stands_in = _COMMAND_LINE not in sys.modules
if _stands_in:
    sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]
try:
    import httpx
finally:
    if _stands_in:
        del sys.modules[_COMMAND_LINE]


def certificates(scheme: str, *, trust_env: bool) -> ssl.SSLContext:
    """What a client checks servers against; loading certificates takes time, so only for HTTPS."""
    if scheme == "https":
        return _loaded(trust_env)
    # no certificates: a connection that needs some would fail rather than trust anybody
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _loaded(trust_env: bool) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=trust_env)


__all__ = ["certificates", "httpx"]
