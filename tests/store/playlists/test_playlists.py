"""Playlists of imports, and rights from rows that no request can create."""

from musicsvc.clock import MovableClock
from musicsvc.errors import NotFound
from musicsvc.store.accounts import tokens
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist, PlaylistInvite, PlaylistTrack
from musicsvc.store.playlists import playlists
from tests.support.people import make_tracks
from tests.support.serving import person


def test_an_imported_playlist_is_made_once_an_owner_and_keeps_its_first_name(store: Store, clock: MovableClock) -> None:
    ann, ben = (person(store, clock, f"{name}@label.test")[0] for name in ("ann", "ben"))

    def ensure(owner: int, external_id: str, name: str) -> int:
        return store.write(lambda: playlists.ensure_imported(owner, external_id, name, clock.now())).result()

    made = ensure(ann, "spotify:1", "Rags")

    assert ensure(ann, "spotify:1", "Marches") == made
    assert store.read(lambda: playlists.get(made).name).result() == "Rags"
    assert len({made, ensure(ann, "spotify:2", "Rags"), ensure(ben, "spotify:1", "Rags")}) == 3


def test_an_accepted_invitation_to_a_playlist_that_is_not_collaborative_gives_no_rights(
    store: Store, clock: MovableClock
) -> None:
    ann, ben = (person(store, clock, f"{name}@label.test") for name in ("ann", "ben"))

    def rights(collaborative: bool) -> tuple[bool, int]:
        by = tokens.identify(tokens.digest(ben[1]))
        assert by is not None
        values = {"name": "Rags", "owner": ann[0], "created_at": 0, "collaborative": collaborative}
        made = Playlist.create(**values).id
        PlaylistInvite.create(playlist=made, user=ben[0], state="accepted", created_at=0, expires_at=1)
        try:
            found = playlists.get_readable(made, actor=by).id == made
        except NotFound:
            found = False
        return found, playlists.list_editable(Page(), actor=by).total

    assert store.write(lambda: rights(collaborative=False)).result() == (False, 0)
    assert store.write(lambda: rights(collaborative=True)).result() == (True, 1)


def test_tracks_are_appended_in_order_however_many_and_whoever_brings_them(store: Store, clock: MovableClock) -> None:
    ann, _ = person(store, clock, "ann@label.test")
    a, b, c = make_tracks(store, 3)

    def unit() -> list[tuple[int, int | None]]:
        playlist = playlists.ensure_imported(ann, "x", "Rags", clock.now())
        playlists.append(playlist, [], actor=ann, now=clock.now())
        playlists.append(playlist, [a, b] * 2_600, actor=ann, now=clock.now())
        playlists.append(playlist, [c], actor=None, now=clock.now())
        rows = PlaylistTrack.select(PlaylistTrack.track, PlaylistTrack.added_by).order_by(PlaylistTrack.id)
        return [*rows.tuples().iterator()]

    assert store.write(unit).result() == [(a, ann), (b, ann)] * 2_600 + [(c, None)]
