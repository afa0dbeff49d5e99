"""HTTP to model servers: one key, one host, bounded time and size.

:class:`Endpoint` sends JSON to a server and reads JSON back. It follows no redirects, keeps the key
out of everything that is written, and turns every failure into an error that says what to do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property
from queue import SimpleQueue
from typing import Any
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import httpx

from longtake._util.cancellation import check_stop, stopping
from longtake.errors import ConfigError, ModelError
from longtake.llm.chat import Unavailable

HIDDEN = "[key]"
"""What replaces a key that a server echoes."""


def without_key(text: str, key: str) -> str:
    """Text without the key, whatever its case: host names are lower-cased."""
    return re.sub(re.escape(key), HIDDEN, text, flags=re.IGNORECASE) if key else text


def redacted(data: Any, key: str) -> Any:
    """Decoded JSON without the key, in texts and in names."""
    if not key:
        return data
    if isinstance(data, str):
        return without_key(data, key)
    if isinstance(data, list):
        return [redacted(each, key) for each in data]
    if isinstance(data, dict):
        return {redacted(name, key): redacted(each, key) for name, each in data.items()}
    return data


MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a response."""
CONNECT_SECONDS = 10.0
"""Maximum time to connect, and to read a short status."""
RETRYABLE = (408, 409, 425, 429)
"""Statuses below 500 after which another try may succeed."""
DEFAULT_PORTS = {"http": 80, "https": 443}
# at debug level both log headers, in which a server could echo a key
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent back, without the key."""

    status: int
    text: str
    model: str
    retry_after: float | None = None
    location: str = ""
    key: str = field(default="", repr=False)
    """The key, which must not appear in anything that is read from here."""

    def json(self) -> Any:
        """The body as JSON; malformed JSON is a failure that another try may mend.

        A server may echo the key with escapes (``\\u0073k-…``), which only decoding reveals.
        """
        try:
            return redacted(json.loads(self.text), self.key)
        except RecursionError as error:
            raise Unavailable(self.model, "the server's reply is nested too deeply") from error
        except ValueError as error:
            detail = "the server's reply is not JSON, or was cut off"
            raise Unavailable(self.model, detail) from error


class Endpoint:
    """A server's base URL with its key and connection pool."""

    def __init__(
        self, name: str, base_url: str, *, key_env: str = "", key: str = "", timeout: float = 120.0
    ) -> None:
        self.name = name
        self.timeout = timeout
        self.key_env = key_env
        self._key = key or (os.environ.get(key_env, "") if key_env else "")
        self.url = check_url(name, base_url, keyed=bool(self._key))

    @property
    def host(self) -> str:
        """``host:port``, for people."""
        return self.url.netloc

    def address(self, path: str) -> str:
        """The address of a path below the base URL; one on another host is an error of ours."""
        joined = urljoin(self.url.geturl(), path)
        if not joined.startswith(f"{self.url.scheme}://{self.host}/"):
            raise ValueError(f"{path!r} is not on {self.host}")
        return joined

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        deadline: float | None = None,
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> Response:
        """Send JSON and read the response, all within the deadline.

        ``on_chunk`` receives the body as it arrives, with the key if the server echoes it.
        """
        limit = self.timeout if deadline is None else min(self.timeout, deadline)
        # if the deadline ends the call, the budget is to blame and not the server
        is_deadline = deadline is not None and deadline <= self.timeout
        if limit <= 0:
            raise Unavailable(self.name, "no time left", out_of_time=True)
        data = json.dumps(body).encode()
        return self._exchange("POST", path, data, limit, is_deadline=is_deadline, on_chunk=on_chunk)

    def get(self, path: str) -> Any:
        """JSON from a path; ``None`` if the server has nothing there."""
        response = self._exchange("GET", path, b"", CONNECT_SECONDS)
        # a wrong key will be wrong for the next request too
        if response.status in (401, 403):
            raise self.failure(response)
        try:
            return response.json() if response.status == 200 else None
        except Unavailable:
            return None

    def failure(self, response: Response) -> ModelError:
        """The error for a status: unavailable if another try may work, else with a remedy."""
        status = response.status
        # error bodies can be whole HTML pages
        message = " ".join(self.redact(_message(response.text)).split())[:300]
        if status in RETRYABLE or status >= 500:
            return Unavailable(
                self.name,
                f"HTTP {status}: {message}",
                status=status,
                retry_after=response.retry_after,
            )
        lower = message.lower()
        names_size = "length" in lower or "size" in lower or "exceed" in lower
        if status >= 400 and status not in (401, 403) and "context" in lower and names_size:
            detail = f"the prompt is too long for the model ({message})"
            return ModelError(self.name, "context", detail)
        return ModelError(self.name, "refused", self._refusal(response, message))

    def _refusal(self, response: Response, message: str) -> str:
        status = response.status
        if status in (401, 403):
            remedy = "set api_key_env in the model's entry"
            if self.key_env:
                remedy = f"check the key in ${self.key_env}"
            return f"{self.host} refused the key; {remedy} (HTTP {status}: {message})"
        if 300 <= status < 400:
            return f"{self.host} redirects to {response.location}; set base_url to that address"
        if status == 404:
            return f"{self.host} has no such model or path; check model and base_url ({message})"
        return f"HTTP {status}: {message}"

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        # made on first use, since loading certificates takes time
        return httpx.AsyncClient(
            headers={
                # replies are short, and a small body that is compressed can become a huge one
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                "User-Agent": "longtake",
                **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            },
            verify=self.url.scheme == "https",
            # what is meant for this machine never goes to the user's proxy
            trust_env=not is_loopback(self.url.netloc),
            # a connection belongs to one exchange, whose end closes it
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        )

    def _exchange(
        self,
        method: str,
        path: str,
        data: bytes,
        limit: float,
        *,
        is_deadline: bool = False,
        on_chunk: Callable[[bytes], None] | None = None,
    ) -> Response:
        """Send a request and read the response; errors of the HTTP library become ours."""
        detail = f"{self.host} gave no reply in {limit:.0f} s"
        late = Unavailable(self.name, detail, out_of_time=is_deadline)
        check_stop()
        # chunks are handled in this thread: whatever that takes or raises is no matter of the loop
        chunks: SimpleQueue[bytes | None] = SimpleQueue()
        feed = None if on_chunk is None else chunks.put
        # timeouts of httpx count from the last byte; a task can be ended at any time
        work = asyncio.wait_for(self._read(method, path, data, limit, feed), limit)
        future = asyncio.run_coroutine_threadsafe(work, _event_loop())
        future.add_done_callback(lambda _: chunks.put(None))
        stop = stopping.get()

        def end() -> None:
            future.cancel()

        try:
            with stop.then(end) if stop is not None else nullcontext():
                for chunk in iter(chunks.get, None):
                    if on_chunk is not None:
                        on_chunk(chunk)
                return future.result()
        except CancelledError:
            check_stop()
            raise
        except TimeoutError as error:
            raise late from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._broken(error, late) from error
        finally:
            end()  # the caller may have been interrupted

    async def _read(
        self,
        method: str,
        path: str,
        data: bytes,
        limit: float,
        feed: Callable[[bytes], None] | None,
    ) -> Response:
        timeout = httpx.Timeout(limit, connect=min(limit, CONNECT_SECONDS))
        # redirects are not followed: one could carry the key and pictures to another host
        async with self._client.stream(
            method, self.address(path), content=data, timeout=timeout
        ) as response:
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                detail = f"the reply is compressed, unasked ({self.redact(encoding)[:80]})"
                raise ModelError(self.name, "refused", detail)
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BYTES:
                    detail = f"the reply is larger than {MAX_BYTES} bytes"
                    raise ModelError(self.name, "refused", detail)
                if feed is not None:
                    feed(chunk)
        return Response(
            response.status_code,
            self.redact(body.decode("utf-8", "replace")),
            self.name,
            _retry_after(response.headers.get("retry-after")),
            self.redact(_host(response.headers.get("location", ""))),
            self._key,
        )

    def redact(self, text: str, *, partial: bool = False) -> str:
        """Text without the key, whatever its case: host names are lower-cased.

        If the text is partial, an end that may become the key is left out.
        """
        text, key = without_key(text, self._key), self._key.lower()
        for length in range(min(len(key), len(text)) if partial else 0, 0, -1):
            if text[-length:].lower() == key[:length]:
                return text[:-length]
        return text

    def _broken(self, error: Exception, late: Unavailable) -> Unavailable:
        """Our error for one of the HTTP library; its text never holds the key."""
        if isinstance(error, httpx.ConnectTimeout):
            return Unavailable(self.name, f"{self.host} cannot be reached")
        if isinstance(error, httpx.TimeoutException):
            return late
        if isinstance(error, httpx.ConnectError):
            detail = f"{self.host} cannot be reached; is the server running?"
            return Unavailable(self.name, detail)
        detail = f"the connection to {self.host} broke ({type(error).__name__})"
        return Unavailable(self.name, detail)


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """The loop of this process that connections run on, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


# the thread does not exist in a process that was forked
os.register_at_fork(after_in_child=_event_loop.cache_clear)


def check_url(name: str, base_url: str, *, keyed: bool) -> SplitResult:
    """A base URL in its usual form, which ends in ``/``, or an error that says what is wrong."""
    try:
        url = urlsplit(base_url)
        host, port = normalize_host(f"[{url.hostname}]") if url.hostname else "", url.port
    except ValueError as error:
        raise ConfigError(f"{name}: {base_url!r} is not a URL", key="base_url") from error
    problem = ""
    if url.scheme not in DEFAULT_PORTS or not host:
        problem = "base_url must begin with http:// or https://"
    elif url.username or url.password:
        problem = "base_url holds a name or password; use api_key_env"
    elif not host.isascii() or any(character <= " " for character in host):
        problem = f"{host!r} is not a host name"
    elif keyed and url.scheme == "http" and not is_loopback(host):
        problem = f"a key is not sent to {host} without encryption; use https://"
    if problem:
        raise ConfigError(f"{name}: {problem}", key="base_url")
    path = quote(url.path, safe="/%:@!$&'()*+,;=~").rstrip("/") + "/"
    netloc = f"[{host}]" if ":" in host else host
    if port not in (None, DEFAULT_PORTS[url.scheme]):
        netloc += f":{port}"
    return SplitResult(url.scheme, netloc, path, "", "")


def _host(location: str) -> str:
    """The host that a redirect names; empty if it names none."""
    try:
        return urlsplit(location).hostname or ""
    except ValueError:
        return ""


def _retry_after(value: str | None) -> float | None:
    """Seconds from the Retry-After header; a date, which model servers do not send, is ignored."""
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def _message(body: str) -> str:
    """The message inside an error body, in the shapes that servers use."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    # OpenAI: {"error": {"message"}}; vLLM: {"message"}; FastAPI: {"detail"}
    error = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return error if isinstance(error, str) else json.dumps(error)


def is_loopback(host: str) -> bool:
    """Whether a host name stays on this machine, decided without a lookup."""
    if host.lower().rstrip(".") == "localhost":
        return True
    address = _parse(normalize_host(host))
    return address is not None and address.is_loopback


def normalize_host(host: str) -> str:
    """A host name in the one form that names are compared in; a port is left out."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    # more than one colon is an IPv6 address without a port
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    address = _parse(name)
    if address is not None:
        return str(address)
    name = name.rstrip(".")
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A numeric address; ``None`` for names."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    # ::ffff:127.0.0.1 is 127.0.0.1, and would otherwise pass for another machine
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
