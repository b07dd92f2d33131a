"""Where the live pages are served: ``--serve HOST:PORT`` -> a socket that listens, and the URL to open."""

import argparse
import contextlib
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field

from suite.base.errors import SpecError

DEFAULT = "127.0.0.1:8000"
_MAX_PORT = 65_535


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
            reason = getattr(error, "strerror", None) or str(error)
            raise SpecError(
                f"--serve cannot listen at {self.host}, port {self.port}: {reason}; "
                "expected an address of this machine and a port that is free, such as --serve 127.0.0.1:8001"
            ) from error


def parse_address(text: str) -> Address:
    """``8000``, ``HOST``, ``HOST:8000`` or ``[::1]:8000``, as ``argparse`` takes its types; 0 is any free port."""
    host, separator, port = text.rpartition(":")
    if not separator or text.endswith("]"):
        host, port = ("", text) if text.isdecimal() else (text, DEFAULT.rpartition(":")[2])
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not (port.isascii() and port.isdecimal() and len(port) <= len(str(_MAX_PORT)) and int(port) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected HOST:PORT with a port up to {_MAX_PORT}")
    if not host.isascii() or any(character.isspace() or character in "/?#@[]" for character in host):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected HOST:PORT, such as {DEFAULT} or [::1]:8000")
    host = host or DEFAULT.partition(":")[0]
    return Address(host, int(port), "" if is_loopback(host) else secrets.token_urlsafe(24))


def is_loopback(host: str) -> bool:
    """Whether a host's name or number is this machine as it calls itself, which no other can reach."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"
