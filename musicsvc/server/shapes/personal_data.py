"""The file with all data of an account, as JSON that is written while it is read."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from musicsvc.clock import isoformat
from musicsvc.store.activity import calls
from musicsvc.store.engine.store import Store
from musicsvc.store.models import User
from musicsvc.store.people import personal_data

LEFT_OUT = ("account_id", "limits_apply", "private", "calls", "retry_after")


def pieces(user: User, log: Store | None, now: int) -> Iterator[bytes]:
    """Yield the file in pieces, in a read transaction of the database. `log`: the activity log, if there is one."""
    yield b'{\n"exported_at": ' + orjson.dumps(isoformat(now))
    sections = personal_data.sections(user, now)
    name, (account,) = next(sections)
    yield b",\n" + orjson.dumps(name) + b": " + orjson.dumps(account)
    for name, rows in sections:
        yield from _section(name, rows)
    yield from _section("calls", () if log is None else _calls(log, user.id))
    yield b"\n}\n"


def _section(name: str, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield b",\n" + orjson.dumps(name) + b": ["
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"\n") + orjson.dumps(row)
    yield b"]"


def _calls(log: Store, user_id: int) -> Iterator[dict[str, Any]]:
    for entry in calls.replay(log, calls.Filter(account_id=user_id)):
        row = {name: value for name, value in entry._asdict().items() if name not in LEFT_OUT}
        yield row | {"at": isoformat(entry.at)}
