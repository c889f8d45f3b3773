"""Validate rows of a listening history (docs/import.md)."""

from functools import partial
from typing import Any, NamedTuple

from musicsvc.store.catalog import external_ids
from musicsvc.store.importing.catalog.rows import FIELDS as CATALOG
from musicsvc.store.importing.catalog.rows import MOST_ARTISTS, NAME, NAMES, TOO_MANY_ARTISTS, artists_of
from musicsvc.store.importing.cells import codes, numbers, times
from musicsvc.store.importing.cells.names import text
from musicsvc.store.importing.columns import Cells, Field
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.runner import RefusedError
from musicsvc.wording import LONGEST_NAME

LISTENER_LENGTH = 64
MOST_IDS = 2**53 - 1
SEVERAL = ("external_id", "artist", "featured_artist", "listened_ms")  # fields that a Listen calls otherwise


class Listen(NamedTuple):
    """A validated play. It names its track by id, by ids in other services, or by artists and track name."""

    line: int
    member: str | None
    track_id: int | None = None
    external_ids: tuple[str, ...] = ()
    isrc: str | None = None
    artists: tuple[str, ...] = ()
    track: str | None = None
    album: str | None = None
    listener: str = ""
    played_at: int = 0
    duration_ms: int | None = None
    client_id: str | None = None
    to_minute: bool = False  # whether its time is cut to the minute
    written: tuple[str, ...] = ()  # the artists in the file, if others took the place of one that was split

    def called(self, artists: tuple[str, ...]) -> "Listen":
        return self._replace(artists=artists, written=self.artists)


def parse(record: Record, cells: Cells, listener: str | None) -> Listen:
    """Validate a row. `listener` is used if the row names none. Raises RefusedError with the reasons of all faults."""
    faults, filled = cells.faults, {name: value for name, value in cells.values.items() if value is not None}
    named = {name: value for name, value in filled.items() if name not in SEVERAL}
    several = {"external_ids": filled.get("external_id", ()), "artists": artists_of(cells)}
    several["duration_ms"] = filled.get("listened_ms")
    of_row = {"listener": listener or ""} | named | several
    to_minute = record.to_minute or isinstance(filled.get("played_at"), times.Minute)
    found = Listen(record.line, record.member, **of_row, to_minute=to_minute)
    cells.refuse("played_at", "is missing", when="played_at" not in filled)
    cells.refuse("played_at", "is before 1970", when=found.played_at < 0)
    cells.refuse("played_at", "is that of a clock that was not set", when=found.played_at in times.UNSET)
    cells.refuse("listener", "is missing; name a listener for the whole file with --listener", when=not found.listener)
    cells.refuse("artist", TOO_MANY_ARTISTS, when=len(found.artists) > MOST_ARTISTS)
    is_named = found.track_id is not None or "track_id" in faults or found.external_ids or found.isrc
    cells.refuse("track", "is missing", when=not (is_named or found.track))
    cells.refuse("artist", "is missing", when=not (is_named or found.artists))
    if faults:
        raise RefusedError(cells.reasons(FIELDS))
    return found._replace(played_at=int(found.played_at)) if to_minute else found


def _id(value: Any) -> int | None:
    number = numbers.number(value)
    if number is not None and (number != number.to_integral_value() or not 1 <= number <= MOST_IDS):
        raise ValueError("must be an id")
    return None if number is None else int(number)


def _external_ids(cells: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(external_ids.bare(each, "track") for each in NAMES(cells)))


FIELDS = {
    "track_id": Field(_id),
    "external_id": Field(_external_ids, several=True),
    "isrc": Field(codes.isrc, optional=True),
    "artist": Field(NAMES, several=True, is_name=True),
    "featured_artist": Field(NAMES, several=True, is_name=True),
    "track": Field(NAME, is_name=True),
    "album": Field(NAME, is_name=True, optional=True),
    "listener": Field(partial(text, longest=LISTENER_LENGTH)),
    "played_at": Field(times.instant, fit=times.fit),
    "listened_ms": CATALOG["duration_ms"]._replace(former="duration_ms"),
    "client_id": Field(partial(text, longest=LONGEST_NAME)),
}
