"""Who may ask the server what. Everything passes here first, whatever it asks for.

- GET and HEAD only, without a body, of a reasonable length.
- ``Host`` must name this server: a name of the machine itself on loopback, an address or a name that was allowed on any
  other bind. So a page elsewhere cannot reach it by a DNS name that it points at 127.0.0.1.
- A request that a page of another origin makes (``Origin``, ``Sec-Fetch-Site``) is refused; following a link is not.
- On any other bind than loopback every request carries a token: once in the address, from then on in a cookie.
- Answers say that they may not be framed, sniffed, cached, or read by other origins, and that the page may run nothing
  but this server's own scripts.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD")
MAX_TARGET = 2000  # bytes of path and query
MAX_HEADERS = 60
MAX_HEADER_BYTES = 16_384
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
COOKIE = "nasbot-token"  # and the port: cookies of one host are shared by all its ports

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True)
class Rules:
    """What the guard asks for. ``names`` are hosts in lower case; ``any_address`` allows every literal IP address."""

    names: frozenset[str] = LOOPBACK_NAMES
    any_address: bool = False
    token: str | None = None

    @classmethod
    def of(cls, host: str, *, token: str | None = None, allowed: Iterable[str] = ()) -> Rules:
        """The rules for a server bound to this address."""
        names = {name.strip().lower() for name in allowed if name.strip()}
        if is_loopback(host):
            return cls(LOOPBACK_NAMES | {bracketed(host)} | names, False, token)
        # A literal address cannot be pointed elsewhere, so on a wildcard bind every one may be used; the token rules.
        return cls(LOOPBACK_NAMES | {bracketed(host)} | names, is_wildcard(host), token)

    def allows_host(self, given: str) -> bool:
        """Whether a Host header names this server; its port is not looked at, since it may be forwarded."""
        name = _without_port(given.strip().lower())
        if name is None:
            return False
        return name in self.names or (self.any_address and _is_address(name.strip("[]")))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Whether a bind to ``host`` is one to all addresses of the machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """As it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


class Guard:
    """The server behind its rules."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or let pass with the headers added."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        refused = _refusal(scope, headers) or self._refused_host(headers) or _refused_origin(headers)
        if refused is not None:
            await _answer(send, *refused)
        elif self.rules.token is not None and not self._has_token(headers, cookie_name(scope)):
            await self._ask_for_token(scope, send)
        else:
            await self.app(scope, receive, _guarded(send))

    # -- hosts ---------------------------------------------------------------------------------------------------------

    def _refused_host(self, headers: list[tuple[str, str]]) -> tuple[HTTPStatus, str] | None:
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or not self.rules.allows_host(hosts[0]):
            return HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that name (--allow-host NAME)"
        return None

    # -- the token -----------------------------------------------------------------------------------------------------

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.rules.token or "").encode())

    def _has_token(self, headers: list[tuple[str, str]], cookie: str) -> bool:
        given = []
        for name, value in headers:
            if name == "authorization" and value.startswith("Bearer "):
                given.append(value.removeprefix("Bearer ").strip())
            elif name == "cookie":
                given += _cookies(value, cookie)
        return any(self._is_token(each) for each in given)

    async def _ask_for_token(self, scope: Scope, send: Send) -> None:
        """A token in the address is taken into a cookie, and out of the address: it should not be copied with it."""
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in asked):
            await _answer(
                send, HTTPStatus.UNAUTHORIZED, "this server asks for a token: open the address that it printed"
            )
            return
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        where = scope["raw_path"].decode("latin-1") + (f"?{rest}" if rest else "")
        cookie = f"{cookie_name(scope)}={self.rules.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=604800"
        # "//host" would lead elsewhere.
        to = "/" + where.lstrip("/\\")
        await _answer(send, HTTPStatus.SEE_OTHER, "", [(b"location", to.encode()), (b"set-cookie", cookie.encode())])


def _refusal(scope: Scope, headers: list[tuple[str, str]]) -> tuple[HTTPStatus, str] | None:
    """What no server of a page has to take."""
    if scope["method"] not in METHODS:
        return HTTPStatus.METHOD_NOT_ALLOWED, "this server only reads: GET and HEAD"
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET:
        return HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long"
    if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers"
    has_body = any(
        name == "transfer-encoding" or (name == "content-length" and value.strip() != "0") for name, value in headers
    )
    if has_body:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request to read has no body"
    return None


def _refused_origin(headers: list[tuple[str, str]]) -> tuple[HTTPStatus, str] | None:
    named = dict(headers)
    host = named.get("host", "").strip().lower()
    origin = named.get("origin")
    if origin is not None and origin.strip().lower() not in (f"http://{host}", f"https://{host}"):
        return HTTPStatus.FORBIDDEN, "pages of other origins may not ask"
    if named.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        is_link = named.get("sec-fetch-mode") == "navigate" and named.get("sec-fetch-dest") == "document"
        if not is_link:
            return HTTPStatus.FORBIDDEN, "pages of other origins may not ask"
    return None


def _without_port(host: str) -> str | None:
    """The name of a Host header, None where it is not one."""
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        name, port = name + bracket, rest[1:]
    else:
        name, _, port = host.partition(":")
    return name if name and (not port or (port.isascii() and port.isdigit() and len(port) <= 5)) else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def cookie_name(scope: Scope) -> str:
    """The name of this server's cookie; another server on the same machine has another."""
    server = scope.get("server")
    return f"{COOKIE}-{server[1]}" if server else COOKIE


def _cookies(header: str, name: str) -> list[str]:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return []
    return [] if found is None else [found.value]


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = {name for name, _ in HEADERS}
            kept = [(name, value) for name, value in message.get("headers", []) if name.lower() not in ours]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return guarded


async def _answer(send: Send, status: HTTPStatus, text: str, more: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = f"{status.value} {status.phrase}: {text}\n".encode() if text else b""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((((b"allow", b"GET, HEAD"),)) if status is HTTPStatus.METHOD_NOT_ALLOWED else ()),
        *more,
    ]
    sender = _guarded(send)
    await sender({"type": "http.response.start", "status": status.value, "headers": headers})
    await sender({"type": "http.response.body", "body": body})
