"""`musicsvc healthcheck`: ask a running server whether it is well, for containers and monitors."""

from __future__ import annotations

import ipaddress
import re
import ssl
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from json import loads
from typing import Annotated
from urllib.parse import urlsplit

import typer

from musicsvc import config, networks
from musicsvc.cli import output
from musicsvc.cli.options import flag, option, show_examples
from musicsvc.cli.session import Session
from musicsvc.clock import SECOND, UNITS, Clock
from musicsvc.errors import Failure
from musicsvc.store.engine.sqlite import file_locks

app = typer.Typer()
LOOPBACK = {4: "127.0.0.1", 6: "[::1]"}
NOT_FOUND = ". No running server was found; this is the address of the settings."
LONGEST = 4096  # bytes of a response that are read


def _seconds(text: str) -> float:
    """Parse a duration such as 2s. Raises BadParameter."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([smh]?)", text)
    if not found or not float(found[1]):
        raise typer.BadParameter(f"{text!r} is not a valid duration such as 2s, 0.5s or 1m.")
    return float(found[1]) * UNITS[found[2] or "s"] / SECOND


def _root(text: str) -> str:
    """Check the address of a server. Raises BadParameter."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
        valid = valid and not {"?", "#", "@"} & {*text}  # the path of the check goes to the end
    except ValueError:
        valid = False
    if not valid:
        raise typer.BadParameter(f"{text!r} is not a valid URL such as http://127.0.0.1:8080.")
    return text.rstrip("/")


Url = Annotated[str | None, option("URL", "Root URL of the server [default: the running one].", parser=_root)]
Timeout = Annotated[float, option("TIME", "Longest wait [default: 2s].", parser=_seconds, show_default=False)]


@app.command(epilog=show_examples("healthcheck", "healthcheck --ready", "healthcheck --url http://127.0.0.1:8080 -q"))
def healthcheck(
    session: Session,
    url: Url = None,
    timeout: Timeout = "2s",  # type: ignore[assignment]  # parsed like a value
    ready: Annotated[bool, flag("Also check the database: ask /readyz, not /healthz.", "--ready")] = False,
) -> None:
    """Check whether a running server is healthy. The exit code is 0 if it is, else 1.

    It is the server that runs over the database of the settings or, if none is found, at the address of the settings.
    Any certificate is accepted, because nothing secret is sent.
    """
    root, note = (url, "") if url else _address(session)
    target = root + ("/readyz" if ready else "/healthz")
    began = session.clock.monotonic()
    status, problem = _ask(target, session.clock, began + timeout)
    milliseconds = round((session.clock.monotonic() - began) * 1000)
    if session.json:
        facts = {"url": target, "ok": problem is None, "status": status, "message": problem}
        output.print_json({**facts, "milliseconds": milliseconds})
    if problem is not None:
        raise Failure(f"{target}: {problem}{note}")
    session.echo(f"{target}: ok ({milliseconds} ms)")


def _address(session: Session) -> tuple[str, str]:
    """Return the root URL at which the server listens, and a note for errors if no running one was found.

    Raises Failure if the settings do not say it either.
    """
    settings = config.load(session.config)  # also with the variables of the demo, which other commands refuse
    port = settings.server.port
    if running := file_locks.served_at(settings.place, port):
        return _reachable(running), ""
    if port == 0:
        raise Failure("No running server was found, and server.port is 0, which is any free port. Name it with --url.")
    return _reachable(networks.listening_url(settings.server)), NOT_FOUND


def _reachable(root: str) -> str:
    """Return the URL to connect to: that of loopback if the server listens on all addresses."""
    parts = urlsplit(root)
    with suppress(ValueError):
        address = ipaddress.ip_address(parts.hostname or "")
        if address.is_unspecified:
            return parts._replace(netloc=f"{LOOPBACK[address.version]}:{parts.port}").geturl()
    return root


def _ask(url: str, clock: Clock, deadline: float) -> tuple[int | None, str | None]:
    """Return the status of the response, if there is one, and the reason why the server is not well, or None."""

    def rest() -> float:
        return max(deadline - clock.monotonic(), 0.001)

    connection = _connection(url, rest())
    try:
        connection.connect()
        connection.sock.settimeout(rest())
        connection.request("GET", urlsplit(url).path, headers={"Connection": "close"})
        response = connection.getresponse()
        text = response.read(LONGEST)
    except TimeoutError:
        return None, "no response in time"
    except (OSError, HTTPException, UnicodeError) as error:
        return None, f"no response ({getattr(error, 'strerror', None) or str(error) or type(error).__name__})"
    finally:
        connection.close()
    well = response.status == HTTPStatus.OK
    return response.status, None if well else f"{response.status} {_message(text) or response.reason}"


def _connection(url: str, timeout: float) -> HTTPConnection:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return HTTPConnection(host, parts.port, timeout=timeout)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(host, parts.port, timeout=timeout, context=context)


def _message(body: bytes) -> str | None:
    """Return the message of an error body, or the status of one without a message, or None."""
    try:
        found = loads(body)
        return str(found.get("message") or found["status"])
    except (ValueError, LookupError, AttributeError):
        return None
