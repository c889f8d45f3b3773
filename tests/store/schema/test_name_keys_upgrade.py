"""An upgrade to the keys of names: spellings, search indexes and the hashes of plays, of a database with data."""

import hashlib
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from musicsvc.clock import SECOND
from musicsvc.store import opening
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.sql import bound, is_sqlite, run, run_many
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Album, Artist, Listener, Merged, Play, Track, TrackArtist
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.schema import history, schema
from tests.support.import_files import import_file
from tests.support.spellings import require_spellings
from tests.support.undoing import AT

NAMES = (
    "a\u2010ha", "\u201cHeroes\u201d", "\u5468\u6770\u4f26", "Bjo\u0308rk", "Don\u00b4t", "12\u2033 Mix", "Plain",
    "Two  Doors", "Zo\u00eb", "\u30ac\u30c1\u30e3", "\u0149\u2019", "Bl\u200bink",
)  # fmt: skip
INDEXES = (name_index.ARTISTS, name_index.ALBUMS, name_index.TRACKS)
FOUND = {
    "a-ha": [1], '"heroes"': [2], "\u6770\u4f26": [3], "\u4f26": [3], "bjork": [4], "don't": [5], '12"': [6],
    "plain": [7], "two doors": [8], "zoe": [9], "\u30c1\u30e3": [10], "'n'": [11], "blink": [12],
}  # fmt: skip


@pytest.fixture
def upgraded(new_database: Callable[..., str], tmp_path: Path) -> str:
    """Return a database with names and plays that was upgraded from the schema before the keys."""
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available()[:5]:
        shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with schema.migrating(url) as database, bound(database), database.atomic():
        _fill()
    assert "0006_name_keys" in schema.upgrade(url)
    return url


def _fill() -> None:
    for table, more in ((Artist, ()), (Album, ()), (Track, (1,))):
        names = ("id", "name", "created_at", "duration")[: 3 + len(more)]
        bulk.insert(table, names, [(at, name, 1, *more) for at, name in enumerate(NAMES, 1)])
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(at, at, 0) for at in range(1, 1 + len(NAMES))])
    Merged.insert(kind=3, former=99, into=1, name="A\u2010HA", imported_for=0).execute()
    Listener.insert(id=1, key="opaque:me").execute()
    for at, name in enumerate(NAMES, 1):
        play = {"track": at, "listener": 1, "client_key": b"", "import_id": 77, "played_at": _at(at)}
        Play.insert(slot=_at(at) // SLOT, names_hash=_hash((name,), name), **play).execute()
    _index_as_before()


def _at(place: int) -> int:
    return (AT - 60 * place) * SECOND


def _hash(artists: tuple[str, ...], track: str) -> int:
    return int.from_bytes(hashlib.blake2b(repr(((artists, track), None)).encode(), digest_size=8).digest()) >> 1


def _index_as_before() -> None:
    """Index the names as programs of 0.1.0 do at the end of a transaction."""
    fold = schema.load("0006_name_keys")._fold
    key = "rowid" if is_sqlite() else "key"
    run("DELETE FROM name_change")
    for table in ("artist", "album", "track"):
        rows = [(len(fold(name)) << 53 | at, "ªª" + _marked(fold(name))) for at, name in enumerate(NAMES, 1)]
        run_many(f"INSERT INTO {table}_search ({key}, name) VALUES (?, ?)", rows)


def _marked(folded: str) -> str:
    return re.sub(r"(?<=[\W_])(?=[^\W_])", "ºº", folded)


def test_every_name_is_found_by_its_key(upgraded: str) -> None:
    with opening.connect(upgraded) as store:
        assert _found(store) == FOUND
        assert store.read(schema.problems).result() == []
        require_spellings(store)
        store.write(name_index.rebuild).result()
        assert _found(store) == FOUND
        require_spellings(store)


def _found(store: Store) -> dict[str, list[int]]:
    def find(text: str) -> list[int]:
        artists, albums, tracks = (index.find(text, 10) for index in INDEXES)
        assert artists == albums == tracks
        return artists

    return store.read(lambda: {text: find(text) for text in FOUND}).result()


@pytest.mark.parametrize("form", ["NFC", "NFD", "as before"])
def test_a_repeat_of_an_old_import_is_found_though_tracks_were_renamed(
    upgraded: str, tmp_path: Path, form: Literal["NFC", "NFD", "as before"]
) -> None:
    with opening.connect(upgraded) as store:
        store.write(lambda: run("UPDATE track SET name = 'Renamed'")).result()
        texts = {name: name if form == "as before" else unicodedata.normalize(form, name) for name in NAMES}
        rows = [
            {"track": texts[name], "artist": texts[name], "played_at": _at(at) // SECOND}
            for at, name in enumerate(NAMES, 1)
        ]
        again = import_file(
            store, tmp_path / "rows.jsonl", Plays(ImportOptions(listener="me", create_missing=True)), rows
        )
        assert (again.counts["plays"].new, again.counts["plays"].repeated) == (0, len(NAMES))
