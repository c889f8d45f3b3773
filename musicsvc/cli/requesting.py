"""`musicsvc request`: send one request to the API without a server, as an account or as nobody."""

from __future__ import annotations

import json as jsonlib
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from musicsvc import curl
from musicsvc.cli import output
from musicsvc.cli.options import argument, option, show_examples
from musicsvc.cli.output import JSON
from musicsvc.cli.secret_input import read_stdin
from musicsvc.cli.session import Session
from musicsvc.errors import Failure, MethodNotAllowed, NotFound
from musicsvc.server import in_process
from musicsvc.server.routes import route as routes
from musicsvc.server.routes import table
from musicsvc.store.accounts import managing, tokens, users
from musicsvc.store.playlists import playlists
from musicsvc.store.plays import subjects
from musicsvc.store.security import security_events
from musicsvc.wording import escape_controls

app = typer.Typer()
PUBLIC, TOKEN, OWNER = TIERS = ("public", "token", "owner")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
TARGET = re.compile(r"/[!-~]*")
NAMED = re.compile(r"/(artist|album|track|playlist)s/([0-9]{1,15})(?:/|$)")  # the object of a path
TEXT = re.compile(r"text/|application/(?:[a-z.-]+\+)?json|application/xml")


def _path(text: str | None) -> str | None:
    """Check the path. Raises BadParameter."""
    if text is not None and not TARGET.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a path such as /api/v1/albums?perPage=2, percent-encoded.")
    return text


def _split(word: str, path: str | None, *, body: bool) -> tuple[str, str]:
    """Return the method and the path. Raises BadParameter."""
    if path is None:
        return "POST" if body else "GET", _path(word) or ""
    if word.upper() not in METHODS:
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(METHODS)}.")
    return word.upper(), path


def _tiers(text: str | None) -> Sequence[str]:
    """Parse the names of tiers. Raises BadParameter."""
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in TIERS]:
        raise typer.BadParameter(f"{unknown[0]!r} is not one of {', '.join(TIERS)}.")
    return [name for name in TIERS if name in names]


Word = Annotated[str, argument("METHOD", "Default: GET, or POST with --data.")]
PathArgument = Annotated[
    str | None, typer.Argument(metavar="PATH", help="Such as /api/v1/albums?perPage=2.", callback=_path)
]
UserOption = Annotated[str | None, option("EMAIL", "The account that sends the request [default: none].")]
Data = Annotated[str | None, option("JSON", "The body: JSON, @FILE, or - for stdin, where secrets belong.")]
As = Annotated[
    str | None,
    option("TIERS", "Of public, token, owner: show the response in each, and what differs.", "--as"),
]


@app.command(
    epilog=show_examples(
        "request GET /api/v1/albums --user ada@example.test",
        "request /api/v1/artists/1 --as public,token,owner",
        "request POST /api/v1/playlists --user ada@example.test --data @playlist.json",
    )
)
def request(
    session: Session,
    method: Word = "",
    path: PathArgument = None,
    user: UserOption = None,
    data: Data = None,
    tiers: As = None,
) -> None:
    """Send one request to the API without a server.

    It takes no token, counts for no limit, and is otherwise answered like any other request: from the configured
    database, with the rights of the account. A request that may write causes the security event request.sent. The last
    line is the request for curl.

    A tier is a kind of caller. public: no token. token: the oldest account with API access that neither owns the object
    nor is an administrator. owner: the account of --user, by default the manager of the artist, album or
    track, or the owner of the playlist.
    """
    body = _body(data)
    method, path = _split(method, path, body=body is not None)
    asked = _Asked(session, method, path, body, curl_file=_of_curl(data))
    names = _tiers(tiers)
    if not names:
        found = asked.send(user)
        output.print_json(found) if session.json else _print(found)
        return
    if asked.writes:
        raise typer.BadParameter(f"--as sends the request once for each tier, and {method} {path} may write.")
    _show_tiers(session, {name: asked.send(email) for name, email in asked.callers(names, user).items()})


def _body(data: str | None) -> bytes | None:
    """Return the body. Raises Failure, or BadParameter for an argument, unless it is JSON."""
    if data is None:
        return None
    try:
        text = data.removeprefix("@")
        if data == "-":
            text = read_stdin("body")
        elif data.startswith("@"):
            text = Path(text).read_text("utf-8")
        jsonlib.loads(text)
    except UnicodeDecodeError:
        raise Failure(f"{data[1:]} is not valid UTF-8. Encode it in UTF-8.") from None
    except (ValueError, RecursionError) as error:
        fault = f"The body is not valid JSON: {error}."
        raise Failure(fault) if _of_curl(data) else typer.BadParameter(fault, param_hint="--data") from None
    return text.encode()


def _of_curl(data: str | None) -> str | None:
    """Return the file from which curl reads the body, if it is not an argument."""
    return "-" if data == "-" else data[1:] if data and data.startswith("@") else None


class _Asked:
    """A request that the command sends, once or for several callers."""

    def __init__(self, session: Session, method: str, target: str, body: bytes | None, curl_file: str | None) -> None:
        """`curl_file`: the file with the body for curl, or None. Raises Failure if the path is not of the API."""
        self._session = session
        self._settings = session.settings()
        self._method, self._body = method, body
        self._curl_file = curl_file
        base = self._settings.server.base_path
        self._target = target.removeprefix(base) if target.startswith(f"{base}/") else target
        self._route = self._find()

    @property
    def writes(self) -> bool:
        return self._route is not None and self._route.writes

    def _find(self) -> routes.Route | None:
        """Return the row of the table, or None if the path has none with this method."""
        path = urlsplit(self._target).path
        try:
            route, _ = routes.Router(table.ROUTES).match(self._method, path)
        except MethodNotAllowed:
            return None
        except NotFound:
            raise Failure(f"There is no endpoint {path}. musicsvc openapi lists them.") from None
        if route.family is routes.Family.PAGE:
            raise Failure(f"{path} is a page, for browsers. Name an endpoint of the API, such as /api/v1/albums.")
        return route

    def callers(self, names: Sequence[str], email: str | None) -> dict[str, str | None]:
        """Return the e-mail of the account of each tier. Raises Failure if there is none."""
        found = self._session.read(lambda: self._accounts(email))
        for name in names:
            if name != PUBLIC and found[name] is None:
                grant = "other account with API access: give it to one with musicsvc access grant EMAIL"
                what = "owner: name it with --user EMAIL" if name == OWNER else grant
                raise Failure(f"There is no {what}.")
        return {name: found[name] for name in names}

    def _accounts(self, email: str | None) -> dict[str, str | None]:
        owners = self._owners()
        owner = users.by_email(email) if email else users.get(min(owners)) if owners else None
        other = users.first_with_access(owners | ({owner.id} if owner else set()))
        return {PUBLIC: None, TOKEN: other.email if other else None, OWNER: owner.email if owner else None}

    def _owners(self) -> set[int]:
        """Return the managers of the artist, album or track that the path names, or the owner of the playlist."""
        found = NAMED.search(urlsplit(self._target).path)
        if found is None:
            return set()
        noun, number = found[1], int(found[2])
        if noun in subjects.KINDS:
            return managing.managers_of(noun, number)
        with suppress(NotFound):
            return {playlists.get(number).owner_id}
        return set()

    def send(self, email: str | None) -> JSON:
        """Send the request as this account or as nobody. Return the response as JSON."""
        import asyncio

        target = self._settings.server.base_path + self._target
        with self._session.store() as store:
            caller = None
            if email is not None:
                caller = store.read(lambda: tokens.identity_of(users.by_email(email))).result()
            if self.writes:
                store.write(lambda: self._record(caller)).result()
            app = in_process.InProcess(self._settings, store, self._session.clock, caller)
            response = asyncio.run(app.answer(in_process.Request(self._method, target, self._body)))
        return _as_json(response) | {"curl": self._curl(authorized=email is not None)}

    def _record(self, caller: tokens.Identity | None) -> None:
        reason = f"{self._method} {urlsplit(self._target).path}"
        account = caller and caller.user_id
        security_events.add(
            "request.sent", account_id=account, reason=reason, now=self._session.clock.now(), actor="cli"
        )

    def _curl(self, *, authorized: bool) -> str:
        """Return the request as a command line; the token is the variable TOKEN."""
        root, hints = self._session.root("the line for curl")
        for hint in hints:
            self._session.echo_once(hint)
        body = None if self._body is None else self._body.decode()
        return curl.command(self._method, root + self._target, authorized=authorized, body=body, file=self._curl_file)


def _as_json(response: in_process.Response) -> JSON:
    """Return the response; a body that is no text is in base64."""
    headers: dict[str, str] = {}
    for name, value in response.headers:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    media = headers.get("Content-Type", "")
    body: Any = None
    if response.body and "json" in media:
        body = jsonlib.loads(response.body)
    elif response.body:
        is_text = TEXT.match(media) is not None
        body = response.body.decode(errors="replace") if is_text else b64encode(response.body).decode()
    return {"status": response.status, "headers": headers, "body": body}


def _print(found: JSON) -> None:
    """Print a response: status, headers, body and the line for curl."""
    headers: Mapping[str, str] = found["headers"]
    lines = [f"{found['status']} {HTTPStatus(found['status']).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    body = found["body"]
    media = headers.get("Content-Type", "")
    if isinstance(body, str) and not TEXT.match(media):
        shown = [f"({headers.get('Content-Length', 'some')} bytes of {media}; --json has them in base64)"]
    elif isinstance(body, str) and "json" not in media:
        shown = body.splitlines()
    else:
        shown = [] if body is None else jsonlib.dumps(body, ensure_ascii=False, indent=2).splitlines()
    for line in [*lines, "", *shown, *([""] if shown else []), found["curl"]]:
        typer.echo(escape_controls(line))


def _show_tiers(session: Session, found: Mapping[str, JSON]) -> None:
    """Print the response in each tier, and the fields by which it differs from the tier before."""
    differences = [_difference(one, other, found) for one, other in pairwise(found)]
    if session.json:
        output.print_json({"tiers": dict(found), "differences": differences})
        return
    for name, each in found.items():
        typer.echo(f"== {name} ==")
        _print(each)
        typer.echo()
    for each in differences:
        typer.echo(f"== {each['from']} -> {each['to']} ==")
        for what in ("added", "removed", "changed"):
            typer.echo(escape_controls(f"{what}: {', '.join(each[what]) or output.NOTHING}"))


def _difference(one: str, other: str, found: Mapping[str, JSON]) -> JSON:
    """Return the fields that the response to `other` adds, lacks and has with other values."""
    before, after = ({"status": [found[name]["status"]]} | _fields(found[name]["body"]) for name in (one, other))
    return {
        "from": one,
        "to": other,
        "added": [field for field in after if field not in before],
        "removed": [field for field in before if field not in after],
        "changed": [field for field in after if field in before and after[field] != before[field]],
    }


def _fields(body: Any) -> dict[str, list[Any]]:
    """Return the values of each field of a body, by its path, such as `data[].id`."""
    found: dict[str, list[Any]] = {}
    for path, value in _leaves(body):
        found.setdefault(path, []).append(value)
    return found


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for each in value:
            yield from _leaves(each, f"{path}[]")
    elif path:
        yield path, value
