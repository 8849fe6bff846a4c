"""Addresses, headers and bodies of requests."""

import ipaddress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from assay.report.env import asset

LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def icon(request: Request) -> Response:
    """Answer with the icon."""
    return Response(asset("icon.svg"), media_type="image/svg+xml")


class TooLarge(Exception):
    """A body has more bytes than it may have."""


class Counted:
    """Receive a body, counting its bytes."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left = receive, limit

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLarge
        return message


def headers_of(scope: Scope) -> dict[str, list[str]]:
    """Return the headers of a request by their names in small letters."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def declared(headers: dict[str, list[str]]) -> int:
    """Return how many bytes a request says that its body has."""
    text = headers.get("content-length", ["0"])[0]
    return int(text) if text.isdecimal() and len(text) < 19 else 2**63


def authorities(hosts: tuple[str, ...], port: int) -> frozenset[str]:
    """Return the Host headers under which a server on these hosts is asked for."""
    return frozenset(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts)


def host_of(name: str) -> tuple[str, ...]:
    """Return the names under which a host may be asked for.

    >>> host_of("127.0.0.1")
    ('127.0.0.1', 'localhost', '::1')
    """
    return LOOPBACK if name in LOOPBACK else (name.lower(),)


def network_of(client: tuple[str, int] | list[str | int] | None) -> str:
    """Return the address of a client; of an IPv6 address, the half that one household has in common.

    >>> network_of(("10.0.0.5", 4711)), network_of(("2001:db8::5:6:7:8", 4711))
    ('10.0.0.5', '2001:db8::')
    """
    try:
        address = ipaddress.ip_address(str(client[0]) if client else "")
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.IPv6Address(int(address) >> 64 << 64))
