"""Whatever accounts import, undo, edit, merge, split and delete, each changes only what it manages."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from musicsvc.errors import Failure
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.managing import managers_of
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.editing import assignments, deletions, edits, merging, splitting
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import runs, undo
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from tests.support.catalog_import import import_rows

NAMES = ("Ann", "Bob", "Duo")
CELLS: Mapping[str, Sequence[str | None]] = {
    "track": ("T", "U"),
    "artist": (*NAMES, "Ann;Bob", "Duo;Ann"),
    "external_id": (None, "1", "2"),
    "isrc": (None, "GBAYE6800011", "GBAYE6800022"),
    "album": (None, "X", "Y"),
    "album_external_id": (None, None, "a1"),
    "album_artist": (None, None, *NAMES),
    "upc": (None, "036000291452"),
    "label": (None, "L1", "L2"),
}
FIND: Mapping[str, Callable[..., Any]] = {
    "artist": edits.find_artist,
    "album": edits.find_album,
    "track": edits.find_track,
}
STEPS = 60
Key = tuple[str, int]  # noun and id


class State(NamedTuple):
    """The rows with their credits, and the accounts that manage each."""

    rows: dict[Key, dict[str, Any]]
    managers: dict[Key, set[int]]

    @classmethod
    def read(cls) -> "State":
        rows: dict[Key, dict[str, Any]] = {}
        for noun, table, credit in (
            ("artist", Artist, None),
            ("album", Album, AlbumArtist),
            ("track", Track, TrackArtist),
        ):
            for row in table.select().dicts().iterator():
                rows[noun, row["id"]] = row
                if credit is not None:
                    of_row = credit.select(credit.artist).where(getattr(credit, noun) == row["id"])
                    row["artists"] = [each for (each,) in of_row.order_by(credit.position).tuples().iterator()]
        return cls(rows, {key: managers_of(*key) for key in rows})

    def ids(self, noun: str) -> list[int]:
        return [number for kind, number in self.rows if kind == noun]


class World:
    """Three accounts, one of which acts at a time."""

    def __init__(self, store: Store, folder: Path, seed: int) -> None:
        self.store, self.folder, self.chance = store, folder, Random(seed)
        self.people = [self.do(partial(self._create, name)) for name in NAMES]

    def _create(self, name: str) -> Identity:
        return tokens.identity_of(users.create(f"{name}@a.test", api_access=True, now=1))

    def do(self, unit: Callable[[], Any]) -> Any:
        return self.store.write(unit).result()

    def act(self, who: Identity, state: State) -> None:
        """Let an account do something, which it may have no right to. Raises Failure if it is refused."""
        name = self.chance.choice(("file", "file", "file", "undo", "edit", "merge", "split", "delete"))
        noun = self.chance.choice(tuple(FIND))
        if name == "file":
            rows = [{field: self.chance.choice(values) for field, values in CELLS.items()} for _ in range(3)]
            rows = [row if row["album"] else row | {"album_external_id": None} for row in rows]
            user = f"{NAMES[self.people.index(who)]}@a.test"
            import_rows(self.store, self.folder / "rows.jsonl", rows, user=user)
        elif name == "undo":
            if found := self.store.read(lambda: runs.newest(user=who.user_id)).result():
                run = self.chance.choice(found).id
                self.store.read(partial(runs.require_own, run, who.user_id)).result()
                undo.undo(self.store, run, now=9, on_progress=lambda *_: None, actor="page")
        elif len(ids := state.ids(noun)) > 1:
            one, other = self.chance.sample(ids, 2)
            self.do(partial(self._change, name, noun, one, other, who))

    def _change(self, name: str, noun: Any, one: int, other: int, who: Identity) -> None:
        if name == "merge":
            merging.merge(noun, one, other, now=5, caller=who)
        elif name == "split":
            splitting.split(one, self.chance.sample(NAMES, 2), now=5, caller=who)
        elif name == "delete":
            deletions.delete(FIND[noun](one, actor=who), now=5, account=who.user_id, actor="api")
        else:
            artists = [artist.id for artist in Artist.select()]
            changes: Mapping[str, Mapping[str, Any]] = {
                "artist": {"name": NAMES[0]},
                "album": {"artist_id": self.chance.choice(artists)},
                "track": {"artists": self.chance.sample(artists, min(2, len(artists)))},
            }
            edits.edit(FIND[noun](one, actor=who), changes[noun], now=5, caller=who, actor="api")

    def assign(self, state: State) -> None:
        """Let the operator give an artist, or all of an account, to another account."""
        former, heir = self.chance.sample(self.people, 2)
        if self.chance.random() < 0.3:
            self.do(lambda: assignments.assign_all(users.get(former.user_id), users.get(heir.user_id), now=5))
        elif ids := state.ids("artist"):
            number = self.chance.choice(ids)
            self.do(lambda: assignments.assign(number, users.get(heir.user_id), now=5))


@pytest.mark.slow
@pytest.mark.rounds(2, 40)
def test_an_account_changes_only_what_it_manages(store: Store, tmp_path: Path, number: int) -> None:
    world = World(store, tmp_path, number)
    for step in range(STEPS):
        before, who = store.read(State.read).result(), world.chance.choice(world.people)
        with suppress(Failure):  # parts of an import or undo may be done
            world.act(who, before)
        after = store.read(State.read).result()
        require_own(before, after, who.user_id, step)
        if step % 4 == 0:
            world.assign(after)


def require_own(before: State, after: State, user: int, step: int) -> None:
    """Fail if a row that the account did not manage is gone or another, or has another album of others."""
    foreign = {key for key, managers in before.managers.items() if user not in managers}
    for key in foreign:
        was, now = before.rows[key], after.rows.get(key)
        left = was.get("album") and ("album", was["album"]) not in foreign  # an album of the account's own may go
        assert now == (was | {"album": now["album"]} if left and now else was), (step, key, user)
    merged = {row.get("album") for key, row in before.rows.items() if key not in after.rows}  # what took its place
    for key, row in after.rows.items():
        if (album := row.get("album")) not in merged and ("album", album) in foreign:
            assert before.rows.get(key, {}).get("album") == album, (step, key, user)
