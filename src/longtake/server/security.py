"""Who may talk to the server.

The server runs on a machine whose browser shows pages of strangers, so every request is checked
before it reaches a route:

- ``Host`` must be one of our names, which defeats DNS rebinding;
- ``Origin``, if a browser sends it, must be one of ours, and no other origin is allowed by CORS;
- the token is required, as ``Authorization: Bearer`` or as the cookie that the one-time URL sets;
- bodies must be declared as JSON, which browsers do not send to another site without a preflight.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longtake._util import write_atomically
from longtake.errors import ConfigError
from longtake.index.store import private_folder
from longtake.server.options import ServeOptions

CODE_SECONDS = 600.0
"""How long the one-time URL works."""
MIN_TOKEN = 16
"""Characters of a token that a user chose."""
PUBLIC = ("/healthz", "/enter", "/favicon.ico", "/")
"""Paths that need no token: they reveal nothing about films, runs or settings."""
PUBLIC_PREFIXES = ("/assets/", "/film/", "/run/", "/compare/", "/replay", "/library")
"""Prefixes of such paths: files of the page, and its addresses, which return the same page."""
UPLOADS = ("/api/v1/films/upload",)
"""Paths that take a film as the body, not JSON."""
MAX_BODY = 1_000_000
"""Bytes of a JSON body."""
OPENAI_PREFIX = "/v1/"
"""Paths for OpenAI's clients, which expect errors in OpenAI's format."""
MAX_OPENAI_BODY = 512_000_000
"""Bytes of a JSON body there, which may hold a film."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # the one-time URL holds a secret
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refusal(NamedTuple):
    """Why a request is rejected."""

    status: int
    detail: str

    def body(self, path: str) -> dict[str, object]:
        """The JSON that the clients of a path expect."""
        if not path.startswith(OPENAI_PREFIX):
            return {"detail": self.detail}
        kind = "authentication_error" if self.status == 401 else "invalid_request_error"
        error = {"message": self.detail, "type": kind, "param": None, "code": "refused"}
        return {"error": error}


class AccessKeys:
    """The token, the cookie derived from it, and one-time codes."""

    def __init__(self, token: str, port: int) -> None:
        self.token = token
        # cookies are shared by all ports of a host, so two servers need two names
        self.cookie_name = f"longtake-{port}"
        # derived, so that a browser stays signed in when the server restarts
        self.cookie = hmac.new(token.encode(), b"longtake cookie", hashlib.sha256).hexdigest()
        # when each of them expires
        self._codes: dict[str, float] = {}

    def code(self) -> str:
        """A code that opens the page once."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = time.monotonic() + CODE_SECONDS
        return code

    def redeem(self, code: str) -> bool:
        """Whether the code is valid; it is not valid again."""
        # removed in one step, so that of two requests with it only one is let in
        return time.monotonic() < self._codes.pop(code, -math.inf)

    def admits(self, headers: Headers) -> bool:
        """Whether a request carries the token or the cookie."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return hmac.compare_digest(given.strip().encode(), self.token.encode())
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        return hmac.compare_digest(cookie.encode(), self.cookie.encode())

    def set_cookie(self, response: Response) -> None:
        """Sign a browser in."""
        month = 30 * 86400
        # strict: browsers do not send it with requests from other sites
        response.set_cookie(
            self.cookie_name, self.cookie, httponly=True, samesite="strict", max_age=month
        )


def open_keys(options: ServeOptions) -> AccessKeys:
    """The user's token, or else the one kept in a file that only the user can read."""
    if options.token:
        if len(options.token) < MIN_TOKEN:
            raise ConfigError(f"the token must have {MIN_TOKEN} characters or more")
        return AccessKeys(options.token, options.port)
    return AccessKeys(_kept_token(token_file(options)), options.port)


def token_file(options: ServeOptions) -> Path:
    """Where the token is kept."""
    return options.data / "token"


def _kept_token(path: Path) -> str:
    private_folder(path.parent)
    if path.exists():
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"{path}: others can read the token; delete it or chmod 600")
        kept = path.read_text().strip()
        # one that a full disk cut off is replaced
        if len(kept) >= MIN_TOKEN:
            return kept
    token = secrets.token_urlsafe(32)
    # readable by the user alone, and written completely or not at all
    write_atomically(path, token.encode())
    return token


class Guard:
    """ASGI middleware that rejects requests of strangers."""

    def __init__(self, app: ASGIApp, keys: AccessKeys, names: tuple[str, ...], home: str) -> None:
        self._app, self._keys, self._home = app, keys, home
        self._names = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and add security headers to the response."""
        if scope["type"] == "websocket":
            # there are no websockets; closing before accepting is a plain 403
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        # the declared length was checked; this counts what is sent
        limit, received = body_limit(scope["path"]), 0

        async def counted_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, f"the body is larger than {limit} bytes")
            return message

        refusal = self.refusal(scope)
        if refusal is not None:
            # without waiting for the body, which may never end
            close = {"Connection": "close"}
            answer = JSONResponse(refusal.body(scope["path"]), refusal.status, close)
            await answer(scope, receive, guarded_send)
        elif scope["path"] == "/enter":
            await self._enter(scope)(scope, receive, guarded_send)
        else:
            try:
                await self._app(scope, counted_receive, guarded_send)
            except asyncio.CancelledError:
                # the server ends while it streams: the response ends too, which is no error
                with suppress(Exception):
                    await send({"type": "http.response.body", "body": b""})

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is rejected; ``None`` if it is accepted."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if headers.get("host", "").lower() not in self._names:
            return Refusal(421, "this server is not known under that host name")
        origin = headers.get("origin")
        if origin is not None and not self._is_own_origin(origin):
            return Refusal(403, "requests of other sites are refused")
        open_path = path in PUBLIC or path.startswith(PUBLIC_PREFIXES)
        # a page of another site requests images and scripts without Origin, but with this
        if headers.get("sec-fetch-site") == "cross-site" and not open_path:
            return Refusal(403, "requests of other sites are refused")
        if not open_path and not self._keys.admits(headers):
            return Refusal(401, "a token is required; open the URL that longtake serve prints")
        # the two contradict each other, and servers differ in which one they follow
        if "content-length" in headers and "transfer-encoding" in headers:
            return Refusal(400, "send either Content-Length or Transfer-Encoding")
        if method in ("POST", "PUT", "PATCH"):
            return _body_refusal(headers, path)
        return None

    def _is_own_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and host.lower() in self._names

    def _enter(self, scope: Scope) -> JSONResponse | RedirectResponse:
        """Turn a one-time code into a cookie."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        # a link in a history or a log works only once
        if not self._keys.redeem(query.get("code", [""])[0]):
            detail = "this link was used before or has expired; longtake serve prints a new one"
            return JSONResponse({"detail": detail}, 403)
        response = RedirectResponse(self._home, status_code=303)
        self._keys.set_cookie(response)
        return response


def _body_refusal(headers: Headers, path: str) -> Refusal | None:
    if path in UPLOADS:
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Refusal(415, "the body must be application/json")
    length = headers.get("content-length")
    # a chunked body has no length to check
    if length is None:
        return Refusal(411, "the length of the body is required")
    limit = body_limit(path)
    # converting a number takes quadratic time, and no length has that many digits
    if not length.isdecimal() or len(length) > 20 or int(length) > limit:
        return Refusal(413, f"the body is larger than {limit} bytes")
    return None


def body_limit(path: str) -> float:
    """Bytes that the body of a request may have."""
    if path in UPLOADS:
        return math.inf  # counted against --max-upload as it is written
    return MAX_OPENAI_BODY if path.startswith(OPENAI_PREFIX) else MAX_BODY
