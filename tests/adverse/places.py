"""The table of the places where the service looks at text of clients."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

from aiohttp._cookie_helpers import parse_cookie_header
from multidict import CIMultiDict, CIMultiDictProxy

from musicsvc import clock, curl, redaction, wording
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.reports import tables, wrapping, writing
from musicsvc.reports.art import avatars
from musicsvc.server import browsers
from musicsvc.server.access import authentication
from musicsvc.server.demo import faults
from musicsvc.server.demo.scoring import mangling
from musicsvc.server.handlers.demo import snapshots
from musicsvc.server.handlers.pages import settings
from musicsvc.server.peer import PeerResolver
from musicsvc.server.request import bodies, first_steps, multipart, parameters, uploads
from musicsvc.server.responses import handling, responses
from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.route import Router
from musicsvc.server.schemas import fields
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.pages import accounts as account_forms
from musicsvc.server.schemas.pages.form import Form, parse_form
from musicsvc.server.schemas.reading import parse_body
from musicsvc.server.shapes import exports, signed_urls
from musicsvc.store.accounts import email_addresses, passwords, tokens
from musicsvc.store.activity import calls
from musicsvc.store.catalog import changes, external_ids, field_texts, genres, identifiers, names
from musicsvc.store.editing import twins
from musicsvc.store.engine import name_index, name_keys
from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.cells import codes, dates, durations, lists, numbers, times
from musicsvc.store.importing.cells import names as name_cells
from musicsvc.store.importing.cells.notations import Sample
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files import encodings, formats, lines, readers, records
from musicsvc.store.importing.files.histories import detection
from musicsvc.store.importing.people import follows
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions, Kind, RefusedError
from musicsvc.store.importing.tasks import work
from musicsvc.store.playlists import invites
from musicsvc.store.plays import periods

FIELD = 8_190  # characters of a header or a target
BODY, ON_LOOP = Body.most_bytes, bodies.SMALL
ROW, CELL = 2**20, csv.field_size_limit()
NAME, PARAGRAPH, HEADING = 255, 10_000, 255
NOW = clock.parse("2026-10-15T12:00:00Z")
CONTEXT = {"hosted": True, "caller_id": 1, "now": NOW}
PIECES = (
    *(" ", "\t", '"', "\\", '\\"', "(", "[", "{", "<", ",", ";", "=", ":", "/", ".", "-", "_", "%", "%25", "&", "+"),
    *("'", "@", "#", "0", "9", "a", "A", "aA", "a ", "a,", "a.", "a-", "a=b;", '";"', '; a="', ';a="\\"', '"a"b', "()"),
    *(
        "\u0301\u0316",
        "é",
        "ﷺ",
        "\u3000",
        "🎵\u200d",
        "क्",
        "ก",
        "中",
        "İ",
        "あ",
        "𒀀",
        "1:",
        "1.1",
        "1e",
        "bearer ",
        "msvc_",
    ),
    *("token ", "password=", '"token":', "[object", "xn--", "=?u?q?x?= ", "\r\n", "&amp;", "@import "),
)
FEW = (" ", '"', "\\", "a", "9", "a.", "a,", "(", "\u0301\u0316", "ﷺ", "://", "2026-")
IN_CELLS = (*FEW, ";", '";"', ":", "1:", "1.", "e", "/", "-", "♯")
ON_PICTURES = (*FEW, "中", "あ", "ก", "क्", "é", "🎵\u200d", "𒀀", "a ", " – ", "\u200b", "İ")
IN_LOGS = (
    *FEW,
    "bearer ",
    "msvc_",
    "token ",
    "password=",
    '"token":',
    "&",
    ";",
    "%25",
    "=",
    "cookie: ",
    '\\"',
    "[",
    "\r\n",
)
SIGNED = b"k" * 32


class Place(NamedTuple):
    """A place where text of clients is looked at, in the way `look`. `most`: the most characters that can get there.

    `frames`: what surrounds the piece that is repeated, at `…`. `make` turns such a text into what `look` takes.
    """

    look: Callable[[Any], object]
    most: int
    frames: Sequence[str] = ("…", "a…\x7f")
    pieces: Sequence[str] = PIECES
    make: Callable[[str], Any] = str

    def texts(self) -> Iterator[tuple[str, Callable[[int], Any]]]:
        """Yield makers of adverse texts of any size, each with a description."""
        for frame in self.frames:
            for piece in self.pieces:
                yield f"{piece!r} in {frame!r}", partial(self._text, frame, piece)

    def _text(self, frame: str, piece: str, size: int) -> Any:
        before, _, after = frame.partition("…")
        room = max(0, size - len(before) - len(after))
        return self.make(before + piece * (room // len(piece)) + after)


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def request(name: str, value: str) -> Any:
    return SimpleNamespace(headers=headers((name, value)))


SETTINGS = Settings.model_validate({"server": {"trusted_proxies": ["127.0.0.0/8"]}})


def resolved(name: str, value: str) -> object:
    return PeerResolver(SETTINGS).resolve("127.0.0.1", headers((name, value)), tls=False)


def cookies(text: str) -> object:
    sent = {name: each.value for name, each in parse_cookie_header(text)}  # what aiohttp uses
    return browsers.read(sent, "", secure=False), browsers.read(
        {browsers.COOKIE: text, browsers.NOTICE: text}, "", secure=False
    )


def demanded(text: str) -> object:
    return faults.parse(text)


def preferred(text: str) -> object:
    return parameters.preferences([text])


def ignored(text: str) -> object:
    return handling.Handling(unknown=[f"query.{text}"]).headers()


def content_type(text: str) -> object:
    look_at = bodies._require_type
    looks: list[Any] = [*(partial(look_at, schema=Body, is_form=each) for each in (False, True)), uploads._boundary]
    return [_tried(look, request("Content-Type", text)) for look in looks]


def token(text: str) -> object:
    return authentication.token_of(text), tokens.well_formed(text)


def path(text: str) -> object:
    local = f"/{text}"
    return ROUTER.match("GET", ROUTER.local(local)), account_forms.own_path(local)


ROUTER = Router(DEMO_ROUTES)


def ids(text: str) -> object:
    return fields.parse_id(text), invites.ID.fullmatch(text), snapshots.NAME.fullmatch(text)


def parts(raw: bytes) -> object:
    """Read a form with the file in pieces, as uploads do."""
    form = multipart.FormData("b")
    for at in range(0, len(raw), 2**16):
        for found in form.feed(raw[at : at + 2**16]):
            if isinstance(found, multipart.Part) and found.filename:
                uploads.SUFFIXES.search(uploads._name(found.filename))
    return form


def part(text: str) -> bytes:
    line = text.replace("\r\n", " ")[: multipart.LONGEST_HEAD - 200]
    return b'--b\r\nContent-Disposition: form-data; name="a"; filename="b.csv"; %s\r\n\r\n' % line.encode()


def many_parts(text: str) -> bytes:
    return b"".join(part(text[at : at + 4000]) + b"\r\n" for at in range(0, len(text), 4000))


def file_name(text: str) -> object:
    name = uploads._name(text)
    return uploads.SUFFIXES.search(name.lower()), exports._slug(text[:NAME])


BLANKS = iter(range(10**9))


def row_of(kind: type[Kind[Any]]) -> Callable[[str], object]:
    """Return a function that reads a row with the text in each cell. Its beginning differs: parsers remember."""

    def look(text: str) -> object:
        made = kind(ImportOptions(user="ann@label.test", listener="ann"))
        cell = " " * (next(BLANKS) % 64) + text
        row = dict.fromkeys(made.fields, cell)
        with suppress(RefusedError):
            made.parse(records.Record(1, row), made.columns.read(row, ()))
        return made

    return look


def cell(text: str) -> object:
    cell = " " * (next(BLANKS) % 64) + text
    looks: list[Callable[[Any], object]] = [times.instant, times.reader("MDY"), name_cells.url, name_cells.unmarked]
    looks += [dates.reader(order) for order in ("DMY", "MDY", None)]
    looks += [durations.reader(form) for form in ("clock", "shifted", "minutes", "milliseconds", "pointed")]
    looks += [codes.isrc, codes.upc, partial(numbers.place, lowest=1, highest=9)]
    sample = Sample([(1, cell), (2, "3.45")])
    fits = [fit(sample) for fit in (dates.fit, times.fit, durations.fit)]
    return [_tried(each, cell) for each in looks], fits, durations.fit(sample._replace(ours=True))


def heading(text: str) -> object:
    return headings.keys(text), headings.unit(text), records.headings([text], Failure)


def read_as(name: str) -> Callable[[str], object]:
    """Return a function that reads a file of this name with a content, and guesses its columns."""

    def look(text: str) -> object:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text, "utf-8", newline="")
            with suppress(Failure), readers.open_file(path) as reader:
                columns = Columns(Catalog(ImportOptions(user="ann@label.test")).fields, (), headings.CATALOG)
                return [*columns.fit(reader)]
        return None

    return look


def several_names(text: str) -> object:
    found = [lists.counted(text, "1,2", joint) for joint in (*lists.JOINTS, lists.COMMA)]
    return found, lists.bracketed(f"[{text}]"), lists.divide(text, (*lists.MARKS, "|")), lists.marks(text)


def head_of_file(text: str) -> object:
    raw = text.encode()[: lines.HEAD]
    found = formats._by_bytes(Path(), raw, records.NONE, packed=False), encodings.guess(raw)
    return *found, detection._table(formats.decoded(raw).splitlines())


def name(text: str) -> object:
    found = name_index.rank(text, text), genres.slug(text), name_keys.caseless_key(text)
    return *found, twins._plain.__wrapped__(text), names.WITH_ID.fullmatch(text)


def code(text: str) -> object:
    found = [external_ids.bare(text, noun) for noun in external_ids.KINDS]
    return found, [_tried(each, text) for each in (identifiers.isrc, identifiers.upc, identifiers.as_isrc)]


def typed(text: str) -> object:
    return [
        (_tried(each.parse, text), each.show(text) if form == "paragraph" else None)
        for form, each in field_texts.TYPING.items()
    ]


def time(text: str) -> object:
    looks = partial(periods.window, now=NOW), clock.parse_duration, calls.parse_statuses, clock.parse
    return [_tried(each, text) for each in looks]


def _tried(look: Callable[[Any], object], text: Any) -> object:
    try:
        return look(text)
    except (Failure, ValueError):
        return None


def account(text: str) -> object:
    found = email_addresses.problem(text), email_addresses.normalize(text), follows._new(follows.get_key(text), text)
    return (
        *found,
        passwords.check(text, email=text, hosted=True),
        passwords.check("a" * 9 + text, email=text, hosted=True),
    )


def drawn(text: str) -> object:
    return (
        wrapping.named(text),
        avatars.initials(text),
        writing.language(text),
        wrapping.wrapping(writing.drawable(text)),
    )


def exported(text: str) -> object:
    return tables.cell(text), wording.unquoted(wording.quoted(text))


def scored(text: str) -> object:
    return mangling.is_no_id(text), mangling.mangled_texts(text[:300])


def shown(text: str) -> object:
    return curl.command("POST", f"http://127.0.0.1/{text}", authorized=True, body=text, headers={"Accept": text})


def signed(text: str) -> object:
    return signed_urls.verify(SIGNED, text)


def cursor(text: str) -> object:
    return changes._read(text, b"12345678")


PLACES: dict[str, Place] = {
    "Content-Type": Place(
        content_type,
        FIELD,
        ("…", "multipart/form-data; boundary=a…", 'multipart/form-data; boundary=a…"x', 'application/json; a="…'),
    ),
    "a header with parameters": Place(parameters.parse, FIELD, ("…", "a;…", 'a;b="…', 'a;b=…"')),
    "Prefer": Place(preferred, FIELD, ("…", "a=…", 'a="…', 'a;b="…', 'a=…"', 'a="b\\\\…', "handling=…")),
    "names that are unknown": Place(ignored, FIELD, ("…", "a.…")),
    "Accept-Encoding, If-None-Match": Place(
        lambda text: responses.Negotiation.of_headers(headers(("Accept-Encoding", text), ("If-None-Match", text))),
        FIELD,
    ),
    **{
        header: Place(partial(resolved, header), FIELD, ("…", "proto=…", "127.0.0.1…"))
        for header in ("Host", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto")
    },
    "Cookie": Place(cookies, FIELD, ("…", "musicsvc=…", 'musicsvc="…')),
    "User-Agent": Place(settings.describe, FIELD),
    "X-Request-Id": Place(responses.is_safe_request_id, FIELD),
    "X-Request-Id of a known head": Place(
        lambda text: first_steps._split(f"\r\nX-Request-Id: {text}\r\n\r\n".encode()), FIELD
    ),
    "Authorization": Place(token, FIELD, ("…", "Bearer msvc_…")),
    "Prefer, X-Demo-Fault": Place(demanded, FIELD, ("…", "code=…", "slow=…", "dribble=1x…")),
    "the path": Place(path, FIELD, ("…", "api/v1/…")),
    "ids and names in the path": Place(ids, FIELD),
    "a signed link": Place(signed, FIELD, ("…", "a.…")),
    "a cursor": Place(cursor, FIELD),
    "JSON": Place(
        partial(parse_body, fields.Body, context=CONTEXT),
        BODY,
        ('{"a":"…', '{"a":…,0'),
        (" ", '"', "\\", '\\"', '"a"', "[", ",", ":", '"a', "a", "\u0301\u0316", "🎵", "\\u00e9", "\\ud83c"),
        str.encode,
    ),
    "JSON with many values": Place(
        partial(parse_body, fields.Body, context=CONTEXT),
        BODY,
        ('{"a":[…0]}', '{"a":…'),
        ("[],", "[", "[[],", '{"a":0},', '"","":', "0,", '\\",', "]", '"a":0,'),
        str.encode,
    ),
    "a number of JSON": Place(
        partial(parse_body, fields.Body, context=CONTEXT),
        BODY,
        ('{"a":…}', '{"a":-0.…1}', '{"a":1…e9}'),
        ("9", "0"),
        str.encode,
    ),
    "a form": Place(
        partial(parse_form, Form, context=CONTEXT),
        BODY,
        ("…", "a=1&b=…"),
        (" ", "+", "%", "%25", "%f0", "%00", "&", "=", "a", "a=1&", ";", "é", "%e2%99%aa"),
        str.encode,
    ),
    "the head of a part": Place(parts, multipart.LONGEST_HEAD - 200, make=part),
    "the heads of many parts": Place(parts, uploads.MOST_OTHER, make=many_parts),
    "the name of a file": Place(file_name, multipart.LONGEST_HEAD),
    "a cell": Place(cell, CELL, ("…", "1…", "2026-01-31…"), IN_CELLS),
    "a cell of several names": Place(
        several_names,
        CELL // 8,
        ("…", "a…", "(…"),
        (" x", "x ", ",", ", ", "\\,", "0,", "&", "(", ") ", "ft. ", " ", "'", '"', "'a',"),
    ),
    "a row of a catalog": Place(row_of(Catalog), ROW // 32, ("…", "1…", "2026-01-31…", "http://a…"), IN_CELLS),
    "a row of plays": Place(row_of(Plays), CELL, ("…", "2026-01-31 12:00:00.…", "1…"), IN_CELLS),
    "a row of follows": Place(row_of(Follows), CELL, ("…", "a@…"), IN_CELLS),
    "a row of playlists": Place(row_of(Playlists), CELL, ("…", "1…"), IN_CELLS),
    "a heading": Place(heading, HEADING, ("…", "a…(", "(…")),
    "headings of a table": Place(
        read_as("a.csv"), ROW, ("…", "track,artist,…\nA,B", "a…,track,artist\nA,B"), (*IN_CELLS, ",", "a,", "é,", "(,")
    ),
    "keys of JSON Lines": Place(
        read_as("a.jsonl"), ROW, ('{"a":0,"…":0}', '{"a":0,…"a":0}'), ("(", "a", "\u0301\u0316", "[", '"a":0,', "a )")
    ),
    "a message of an import": Place(work._in_words, PARAGRAPH, ("…", "isrc…"), (" ", "isrc", "isrc ", "album_", "-")),
    "the beginning of a file": Place(head_of_file, lines.HEAD, ("…", "a,b,c,…", "GIF8…")),
    "a name": Place(name, names.LONGEST, ("…", "a… (1)", "a… (")),
    "a code": Place(code, NAME, ("…", "spotify:track:…", "https://open.spotify.com/user/…", "urn:mbid:…")),
    "a field of a page": Place(typed, PARAGRAPH, ("…", "1:…", "a;…", "1,…")),
    "a period, a time, a duration": Place(time, FIELD, ("…", "2026-…", "2026-01-31T12:00:00.…")),
    "an e-mail address, a password": Place(account, FIELD, ("…", "a@…", "…@a.test", "a@a.…")),
    "a text on a picture or in a report": Place(drawn, NAME, ("…", "あ…"), ON_PICTURES),
    "a cell of an export": Place(exported, PARAGRAPH, ("…", "=…", "\r…")),
    **{
        f"what a demo records, by {look.__name__}": Place(look, 16 * 1024, ("…", '"token":"…', "token=…"), IN_LOGS)
        for look in (redaction.redact, redaction.redact_unknown, redaction.redact_json)
    },
    "what a demo records, as a name of JSON": Place(
        lambda text: redaction.redact_json({text: 0}), 16 * 1024, pieces=IN_LOGS
    ),
    "the score of a demo": Place(scored, FIELD, ("…", "1…", "-1.1e…")),
    "a request that is shown": Place(shown, FIELD),
}
