"""Requests of the journal of the demo as command lines of curl."""

from musicsvc import curl
from musicsvc.server.demo.journal import CUT, Entry

NO_TEXT = frozenset("\0\ufffd")


def curl_of(entry: Entry, origin: str) -> str | None:
    """Return the command line for the request, or None if it is too long.

    A body that is long, or no text, is read from a file.
    """
    if entry.target.endswith(CUT):
        return None
    headers = {name: value for name, value in entry.headers.items() if name != "User-Agent" and value != "*/*"}
    body = None if entry.body is None else entry.body.decode()
    no_text = not entry.is_json and not NO_TEXT.isdisjoint(body or "")
    file = "body" if entry.is_cut or no_text else None
    url, authorized = origin + entry.target, entry.token is not None
    return curl.command(entry.method, url, authorized=authorized, body=body, file=file, headers=headers)
