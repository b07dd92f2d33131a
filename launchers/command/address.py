"""Where the live pages are served: ``--serve HOST:PORT`` -> a socket that listens, and the URL to open."""

import argparse
import contextlib
import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from suite.base.errors import SpecError

_HOST, _PORT = "127.0.0.1", 8000
DEFAULT = f"{_HOST}:{_PORT}"


@dataclass(frozen=True)
class Address:
    """A host and port to listen at; ``token`` is "" where only this machine can connect."""

    host: str
    port: int
    token: str = field(default="", repr=False)

    def url(self, port: int) -> str:
        """Spell what to open in a browser, once the port is known; of all addresses of this machine its name."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/{self.token and self.token + '/'}"

    def listen(self) -> socket.socket:
        """Open the socket; a SpecError where the port is taken, or the address is none of this machine's."""
        try:
            kind, _, _, _, place = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            return socket.create_server(place[:2], family=kind)
        except (OSError, UnicodeError) as error:
            where, reason = f"{self.host}, port {self.port}", getattr(error, "strerror", None) or str(error)
            expected = "expected an address of this machine and a port that is free, such as --serve 127.0.0.1:8001"
            raise SpecError(f"--serve cannot listen at {where}: {reason}; {expected}") from error


def parse_address(text: str) -> Address:
    """``8000``, ``HOST``, ``HOST:8000`` or ``[::1]:8000``, as ``argparse`` takes its types; 0 is any free port."""
    try:
        place = urlsplit(f"//:{text}" if text.isdecimal() else f"//{text}")
        host, port = place.hostname or _HOST, _PORT if place.port is None else place.port
        if not re.fullmatch(r"[\w.:%\[\]-]*", text, re.ASCII):
            raise ValueError("other characters")
    except ValueError as error:
        expected = f"expected HOST:PORT with a port up to 65535, such as {DEFAULT} or [::1]:8000"
        raise argparse.ArgumentTypeError(f"found {text!r}, {expected}") from error
    return Address(host, port, "" if is_loopback(host) else secrets.token_urlsafe(24))


def is_loopback(host: str) -> bool:
    """Whether a host's name or number is this machine as it calls itself, which no other can reach."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"
