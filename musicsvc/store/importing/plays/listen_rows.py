"""Validate rows of a listening history (docs/import.md)."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from musicsvc.store.catalog import external_ids
from musicsvc.store.importing.catalog.rows import FIELDS as CATALOG
from musicsvc.store.importing.catalog.rows import MOST_ARTISTS, NAME, NAMES, TOO_MANY_ARTISTS, artists_of
from musicsvc.store.importing.cells import codes, numbers, times
from musicsvc.store.importing.cells.names import text
from musicsvc.store.importing.columns import SUMS, Cells, Field
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.runner import RefusedError
from musicsvc.wording import LONGEST_NAME

LISTENER_LENGTH = 64
MOST_IDS = 2**53 - 1
MOST_KNOWN = 20_000  # a file names few tracks at a time; more than these would take memory only


@dataclass(slots=True, eq=False)
class Named:
    """A track as rows name it: by id, by ids in other services, by ISRC, or by artists and track name.

    Rows that name the same share one, so that it is looked up once. `written`: the artists in the file, if others took
    the place of one that was split. `hashes`: see `matching.hashes`. `is_sound`: nothing is missing, as far as one sees
    at once. `isrc_first`: its ISRC comes before its ids in other services.
    """

    track_id: int | None
    external_ids: tuple[str, ...]
    isrc: str | None
    artists: tuple[str, ...]
    track: str | None
    album: str | None
    written: tuple[str, ...] = ()
    hashes: tuple[int | None, ...] | None = None
    is_sound: bool = False
    isrc_first: bool = False

    def called(self, artists: tuple[str, ...]) -> "Named":
        return replace(self, artists=artists, written=self.artists, hashes=None)


Known = dict[tuple[Any, ...], Named]  # by all that it names


class Listen(NamedTuple):
    """A validated play. `to_minute`: its time is cut to the minute."""

    line: int
    member: str | None
    named: Named
    listener: str
    played_at: int
    duration_ms: int | None
    client_id: str | None
    to_minute: bool


def parse(record: Record, cells: Cells, listener: str | None, known: Known) -> Listen:
    """Validate a row. `listener` is used if the row names none. Raises RefusedError with the reasons of all faults.

    `known`: what earlier rows named, to which that of the row is added.
    """
    read = cells.values.get
    artists = artists_of(cells) if "featured_artist" in cells.values else read("artist") or ()
    names = read("track_id"), read("external_id") or (), read("isrc"), artists, read("track"), read("album")
    named = known.get(names)
    if named is None:
        if len(known) >= MOST_KNOWN:
            known.clear()
        named = known[names] = Named(*names)
        has_names = bool(artists and named.track) and len(artists) <= MOST_ARTISTS
        named.is_sound = has_names or bool(not artists and (named.track_id or named.external_ids or named.isrc))
    at: Any = read("played_at")
    who: Any = read("listener") or listener
    if at is None or at <= 0 or at in times.UNSET or not who or cells.faults or not named.is_sound:
        _refuse(cells, named, at, who)
    cut = record.to_minute or type(at) is times.Minute
    own = read("listened_ms"), read("client_id"), cut
    return tuple.__new__(Listen, (record.line, record.member, named, who, int(at) if cut else at, *own))


def _refuse(cells: Cells, named: Named, at: int | None, listener: str | None) -> None:
    faults = cells.faults
    cells.refuse("played_at", "is missing", when=at is None)
    cells.refuse("played_at", "is before 1970", when=(at or 0) < 0)
    cells.refuse("played_at", "is that of a clock that was not set", when=at in times.UNSET)
    cells.refuse("listener", "is missing; name a listener for the whole file with --listener", when=not listener)
    cells.refuse("artist", TOO_MANY_ARTISTS, when=len(named.artists) > MOST_ARTISTS)
    is_named = named.track_id is not None or "track_id" in faults or named.external_ids or named.isrc
    cells.refuse("track", "is missing", when=not (is_named or named.track))
    cells.refuse("artist", "is missing", when=not (is_named or named.artists))
    if faults:
        raise RefusedError(cells.reasons(FIELDS))


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
    "played_at": Field(times.instant, fit=times.fit, varied=True),
    "listened_ms": CATALOG["duration_ms"]._replace(former="duration_ms"),
    "client_id": Field(partial(text, longest=LONGEST_NAME), varied=True),
    SUMS: Field(numbers.single, fit=numbers.fit_singles),
}
