"""The kept releases: a database of each, for both databases, what its program used, and what its API answered, and
its OpenAPI document.

`tests/releases/keep.py` writes the files in `tests/releases/kept`.
"""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from musicsvc.server.routes.route import Family
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import models
from musicsvc.store.schema import history
from tests.support.serving import Client

FOLDER = Path(__file__).with_name("kept")
IDS = (1, 2, 19, 21)  # of tracks, and of what else has such an id; the artist 21 has a long list of tracks
PERIODS = ("", "?from=2024-09-01&to=2024-10-31")
MORE_PATHS = (
    "/api/v1/artists/21/tracks?page=70",
    "/api/v1/search?query=bach",
    "/api/v1/tracks?page=100&perPage=41",
    "/api/v1/users/search?query=demo",
)
ROOT = "http://root"  # in place of the address of the server
VOLATILE = {"/metrics", "/api/v1/openapi.json", "/openapi.json", "/api/v1/changes"}  # its cursors are of one database


class Release(NamedTuple):
    """A release: its version, its migrations in order, and the tables and columns that its program reads or writes."""

    version: str
    migrations: list[str]
    uses: dict[str, list[str]]


def releases(part: str = "database") -> list[Release]:
    """Return the kept releases, oldest first. `part`: `database`, or `log` for the activity log."""
    found = [Release(file.stem, **json.loads(file.read_text("utf-8"))[part]) for file in FOLDER.glob("*.json")]
    return sorted(found, key=lambda each: history.release(each.version))


def content(release: Release, ending: str) -> bytes:
    """Return the unpacked content of a file of the release, such as `sqlite.db.xz`."""
    return lzma.decompress((FOLDER / f"{release.version}.{ending}").read_bytes())


def write(version: str, parts: Mapping[str, Release], contents: Mapping[str, bytes]) -> list[Path]:
    """Write the files of a release, and return their paths. `contents`: those to compress, by the end of the name."""
    FOLDER.mkdir(exist_ok=True)
    facts = {name: {"migrations": part.migrations, "uses": part.uses} for name, part in parts.items()}
    (FOLDER / f"{version}.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    for ending, whole in contents.items():
        packed = lzma.compress(whole, preset=9 | lzma.PRESET_EXTREME)
        (FOLDER / f"{version}.{ending}").write_bytes(packed)
    return sorted(FOLDER.glob(f"{version}.*"))


def used(file: Path) -> dict[str, list[str]]:
    """Return the tables and columns of a SQLite database that this program reads or writes.

    Columns that a model has no more are not used. Tables without a model are used whole.
    """
    tables: list[Any] = [*models.tables(), *models.LOG_TABLES]
    modelled = {table._meta.table_name: {field.column_name for field in table._meta.sorted_fields} for table in tables}
    return {
        table: [column for column in columns if column in modelled.get(table, columns)]
        for table, columns in columns_of(file).items()
    }


def columns_of(file: Path) -> dict[str, dict[str, bool]]:
    """Return whether each column must have a value in a new row, by table and name."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[1] for row in connection.execute("PRAGMA main.table_list") if row[2] in {"table", "virtual"}]
    found = {
        str(table): {
            str(name): bool(not_null and default is None and not key)
            for _, name, _, not_null, default, key in connection.execute(f"PRAGMA table_info({table})")
        }
        for table in sorted(map(str, tables))
        if not table.startswith("sqlite_")
    }
    connection.close()
    return found


def paths() -> list[str]:
    """Return paths to read from every endpoint of the API that answers in JSON."""
    found = {
        "/".join(str(number) if part.startswith("{") else part for part in route.path.split("/")) + period
        for route in ROUTES
        if route.method == "GET" and route.family in {Family.GENERAL, Family.INSIGHTS} and route.path not in VOLATILE
        for number in (IDS if "{" in route.path else IDS[:1])
        for period in (PERIODS if route.family is Family.INSIGHTS else PERIODS[:1])
    }
    return sorted(found | set(MORE_PATHS))


async def ask(anonymous: Client, token: str, wanted: list[str]) -> dict[str, Any]:
    """Return the response to each path, by who asks."""
    return {
        who: {path: await _answer(client, path) for path in wanted}
        for who, client in (("demo", anonymous.holding(token)), ("anonymous", anonymous))
    }


async def _answer(client: Client, path: str) -> list[Any]:
    answer = await client.get(path)
    is_json = answer.headers.get("Content-Type", "").startswith("application/json")
    return [answer.status, json.loads(answer.body.replace(client.root.encode(), ROOT.encode())) if is_json else None]


def lost(before: Any, now: Any, place: str = "") -> list[str]:
    """Return the places where `now` lacks what `before` has, or has it otherwise. Further keys of objects are none."""
    if isinstance(before, dict) and isinstance(now, dict):
        pairs = [(f"{place}.{key}", value, now.get(key, ...)) for key, value in before.items()]
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = [(f"{place}[{at}]", *pair) for at, pair in enumerate(zip(before, now, strict=True))]
    else:
        return [] if before == now else [f"{place}: {before!r} is now {now!r}"]
    return [line for name, old, new in pairs for line in lost(old, new, name)]
