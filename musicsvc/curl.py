"""Writes a request as a command line of curl for a POSIX shell. The token is the variable TOKEN."""

import re
import shlex
from collections.abc import Mapping, Sequence

GLOBBED = re.compile(r"[\[\]{}]")  # curl would expand them
DOTS = re.compile(r"/\.{1,2}(?:[/?#]|$)")  # curl would remove these segments
JSON = "application/json"
SENT_AS, ACCEPTED = "Content-Type", "Accept"
BEARER = '-H "Authorization: Bearer $TOKEN"'


def command(
    method: str,
    url: str,
    *,
    authorized: bool,
    body: str | None = None,
    file: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> str:
    """Return the command line, which prints the whole response. `authorized`: it sends the token.

    `file`: the file with the body, in place of `body`. `headers`: those that are sent; by default, a body is JSON.
    """
    sent = dict({SENT_AS: JSON} if headers is None else headers)
    kind = sent.pop(SENT_AS, "")
    words = ["curl", "-I" if method == "HEAD" else "-i"]
    words += ["-g"] if GLOBBED.search(url) else []
    words += ["--path-as-is"] if DOTS.search(url) else []
    data = [] if method == "HEAD" else _data(body, file, kind)
    if "--json" in data[:1] and sent.get(ACCEPTED) == JSON:
        del sent[ACCEPTED]  # it is implied
    if method not in {"HEAD", "POST" if data else "GET"}:
        words += ["-X", method]
    words += [*data, *(word for name, value in sent.items() for word in _header(name, value))]
    return " ".join([shlex.join(words), *([BEARER] if authorized else []), shlex.quote(url)])


def _data(body: str | None, file: str | None, kind: str) -> Sequence[str]:
    """Return the options for a body of the media type `kind`."""
    if file is None and body is None:
        return []
    if kind == JSON and (file is not None or not (body or "").startswith("@")):
        return ["--json", f"@{file}" if file is not None else body or ""]
    data = ["--data-raw", body or ""] if file is None else ["--data-binary", f"@{file}"]
    return [*data, *_header(SENT_AS, kind)]


def _header(name: str, value: str) -> Sequence[str]:
    if value:
        return ["-H", f"{name}: {value}"]
    return ["-H", f"{name}:" if name == SENT_AS else f"{name};"]  # not sent at all, or sent without a value
