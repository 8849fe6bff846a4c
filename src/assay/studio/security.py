"""Who may talk to the studio, and how much.

Every request passes `Guard` before any page sees it:

- Host must be the address that the studio was started with, so that a foreign name which resolves to this machine
  (DNS rebinding) reaches nothing.
- A request that changes something must carry the studio's own Origin; one that a foreign page caused is refused.
- The first page is opened with a token from the terminal. It works once, and is exchanged for a cookie that scripts
  cannot read and other sites cannot send. On another address than loopback a password takes its place.
- Wrong passwords close the door for the network that they came from, for longer each time, and for nobody else.
- Bodies are counted as they arrive: what is declared or grows too large is refused.

Forms carry a further secret, `Session.csrf`, which `pages.form` compares.
"""

import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.web import Counted, TooLarge, authorities, declared, headers_of, network_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
FORM_BYTES = 4 * 2**20
"""What a form without a file may have."""
LOGIN_BYTES = 2**13
"""What a form may have that anybody can send."""
_SAFE = ("GET", "HEAD")
_ENTER = (
    '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Assay</title>'
    '<link rel="icon" href="/favicon.ico" type="image/svg+xml"><a href="/">Assay</a>'
)
_TRIES = 5  # wrong passwords in a row that cost nothing
_PAUSE, _LONGEST = 60.0, 3600.0  # seconds after the next one, doubled by each that follows, and at most
_REMEMBERED = 10_000  # networks


@dataclass
class Session:
    """A browser that was let in."""

    key: str
    csrf: str


@dataclass
class Settings:
    """How the studio was started. `token` is used up by the first browser; `password` is asked for elsewhere.

    A page waits so many seconds, `patience`, for an answer; then it is shown without, and filled in later.
    """

    hosts: tuple[str, ...]
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    password: str | None = None
    most_bytes: int = 2**30
    patience: float = 0.1

    @property
    def cookie(self) -> str:
        return f"assay_studio_{self.port}"  # cookies of one host are shared by all its ports

    @property
    def authorities(self) -> frozenset[str]:
        """Host headers that are ours."""
        return authorities(self.hosts, self.port)


class Tries:
    """Wrong passwords, by the network that they came from."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, tuple[int, float]] = {}  # how many, and the time before which no more are heard

    def wait(self, network: str) -> float:
        """Return the seconds until a network may try again."""
        return max(0.0, self._known.get(network, (0, 0.0))[1] - self._now())

    def wrong(self, network: str) -> None:
        """Count a wrong password."""
        count = self._known.pop(network, (0, 0.0))[0] + 1
        pause = min(_PAUSE * 2.0 ** min(count - _TRIES, 10), _LONGEST) if count >= _TRIES else 0.0
        self._known[network] = (count, self._now() + pause)
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def right(self, network: str) -> None:
        """Forget what was wrong."""
        self._known.pop(network, None)


class Guard:
    """The door of the studio."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self._sessions: dict[str, Session] = {}
        self._token: str | None = settings.token if settings.password is None else None
        self.tries = Tries()
        self._form = secrets.token_urlsafe(32)  # of the form that asks for the password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = headers_of(scope)
        answer = self._refusal(scope, headers)
        limit = {"/tables": self.settings.most_bytes, "/login": LOGIN_BYTES}.get(scope["path"], FORM_BYTES)
        if answer is None and declared(headers) > limit:
            answer = too_large()
        counted = Counted(receive, limit)
        try:
            answer = answer or await self._entrance(scope, headers, counted)
        except TooLarge:
            answer = too_large()
        await (answer or self.app)(scope, counted, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> Response | None:
        """Refuse what does not come from a page of ours, or is not meant for us."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.settings.authorities:
            return PlainTextResponse("Refused: this address is not the studio's.\n", 421)
        if "\0" in scope["path"] or len(scope["path"]) > 500 or len(scope["query_string"]) > 100_000:
            return PlainTextResponse("Refused: malformed address.\n", 400)
        site = headers.get("sec-fetch-site", ["none"])[0]
        if scope["method"] in _SAFE:
            foreign = site not in ("same-origin", "none") and scope["path"] != "/open"
        else:
            foreign = headers.get("origin") != [f"http://{hosts[0]}"] or site not in ("same-origin", "none")
        return PlainTextResponse("Refused: the request comes from another site.\n", 403) if foreign else None

    async def _entrance(self, scope: Scope, headers: dict[str, list[str]], receive: Receive) -> Response | None:
        """Let in who has the cookie; exchange token or password for it; None to go on to the page."""
        path, method = scope["path"], scope["method"]
        session = self._known(headers)
        if session is not None:
            scope.setdefault("state", {})["session"] = session
        if path == "/open" and method == "GET":
            return self._by_token(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0])
        if path == "/login" and method == "POST" and self.settings.password is not None:
            body = parse_qs((await _body(receive)).decode("utf-8", "replace"))
            if not hmac.compare_digest(_digest(body.get("csrf", [""])[0]), _digest(self._form)):
                return PlainTextResponse("Refused: the form is not the studio's. Load the page again.\n", 403)
            return self._by_password(body.get("password", [""])[0], network_of(scope.get("client")))
        if session is not None and path == "/login":
            return RedirectResponse("/", 303)
        if session is not None or path == "/favicon.ico" or path.startswith("/static/"):
            return None
        if self.settings.password is None:
            return PlainTextResponse("Open the address that the terminal printed; it works once.\n", 403)
        if path != "/login":
            return RedirectResponse("/login", 303)
        scope.setdefault("state", {})["form"] = self._form
        return None

    def _known(self, headers: dict[str, list[str]]) -> Session | None:
        for line in headers.get("cookie", []):
            try:
                result = SimpleCookie(line).get(self.settings.cookie)
            except CookieError:
                continue
            if result is not None:
                return self._sessions.get(_digest(result.value))
        return None

    def _by_token(self, given: str) -> Response:
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse("This link has been used, or is not the studio's. Start it again.\n", 403)
        self._token = None
        # A page and no redirect: what a file or another site leads to is still theirs after a redirect, without cookie.
        return self._let_in(HTMLResponse(_ENTER))

    def _by_password(self, given: str, network: str) -> Response:
        seconds = math.ceil(self.tries.wait(network))
        if seconds:
            return PlainTextResponse(
                f"Too many wrong passwords; wait {seconds} seconds.\n", 429, {"retry-after": str(seconds)}
            )
        if not hmac.compare_digest(_digest(given), _digest(self.settings.password or "")):
            self.tries.wrong(network)
            return RedirectResponse("/login?wrong=1", 303)
        self.tries.right(network)
        return self._let_in(RedirectResponse("/", 303))

    def _let_in(self, answer: Response) -> Response:
        key = secrets.token_urlsafe(32)
        self._sessions[_digest(key)] = Session(_digest(key), secrets.token_urlsafe(32))
        answer.set_cookie(self.settings.cookie, key, httponly=True, samesite="strict", path="/")
        return answer


def too_large(*_: object) -> Response:
    """Return the answer to a body that has more bytes than it may have."""
    return PlainTextResponse("Refused: the upload is too large.\n", 413)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _body(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return sending
