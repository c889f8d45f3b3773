"""The fixtures: accounts, catalog and comments."""

import itertools
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engagement.comments import GAP
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Comment, Track, TrackArtist, TrackTag, User
from musicsvc.store.seeding import fixtures
from musicsvc.store.seeding.world import FixtureSummary
from tests.conftest import Sample


@pytest.fixture
def made(sample: Sample) -> FixtureSummary:
    return sample.made


def test_a_second_load_makes_nothing(store: Store, clock: MovableClock, made: FixtureSummary) -> None:
    again = store.write(lambda: fixtures.load(now=clock.now())).result()
    assert again == FixtureSummary()
    assert made["tracks"] == store.read(Track.select().count).result() == 18


@pytest.mark.usefixtures("made")
def test_what_is_missing_is_made_again_without_doubles(store: Store, clock: MovableClock) -> None:
    store.write(lambda: Album.delete().where(Album.external_id == "fixture:wtc").execute()).result()
    again = store.write(lambda: fixtures.load(now=clock.now())).result()
    assert (again["albums"], again["artists"], again["tracks"]) == (1, 0, 0)


@pytest.mark.usefixtures("made")
def test_ids_are_the_same_in_every_store(store: Store) -> None:
    rows = store.read(
        lambda: list(Artist.select(Artist.id, Artist.name).order_by(Artist.id).tuples().iterator())
    ).result()
    assert rows[0] == (1, "Johann Sebastian Bach")
    assert [row[0] for row in rows] == list(range(1, 18))
    first = store.read(lambda: Track.get_by_id(1)).result()
    assert first.name == "Praeludium C-Dur"


def test_every_account_and_token_is_in_the_state_that_it_stands_for(
    store: Store, clock: MovableClock, made: FixtureSummary
) -> None:
    def states() -> dict[str, tuple[str, bool, bool]]:
        found: dict[str, tuple[str, bool, bool]] = {}
        for key, value in made.tokens.items():
            token = tokens.find_by_value(value)
            assert token is not None
            found[key] = (
                tokens.state(token, clock.now()),
                token.user.api_access,
                token.user.suspended_at is not None,
            )
        return found

    assert store.read(states).result() == {
        "demo": ("valid", True, False),
        "valid": ("valid", True, False),
        "expired": ("expired", True, False),
        "revoked": ("revoked", True, False),
        "listener": ("valid", True, False),
        "newcomer": ("valid", False, False),
        "suspended": ("valid", True, True),
    }
    assert all(tokens.well_formed(value) for value in made.tokens.values())


@pytest.mark.usefixtures("made")
def test_no_account_has_a_password_and_every_email_is_nobodys(store: Store) -> None:
    accounts = store.read(users.list).result()
    assert all(account.password_hash is None and account.email.endswith(".test") for account in accounts)
    assert [account.email for account in accounts if account.admin] == ["admin@musicsvc.test"]
    assert accounts[0].email == fixtures.DEMO_EMAIL


def test_token_values_do_not_show_in_a_summary(made: FixtureSummary) -> None:
    assert not any(value in repr(made) for value in made.tokens.values())


@pytest.mark.usefixtures("made")
def test_every_kind_of_licence_price_and_fingerprint_is_there(store: Store) -> None:
    tracks: list[Any] = store.read(lambda: list(Track.select())).result()
    assert {track.licensing_type for track in tracks} == {"non_exclusive_only", "both", "exclusive_only"}
    assert {track.exclusive_status for track in tracks} == {"available", "not_available", "sold"}
    assert {track.fingerprint_status for track in tracks} == {"pending", "processing", "completed", "failed"}
    assert {None, 0.0, 29.95} <= {track.price for track in tracks}
    assert {"USD", "EUR", "JPY"} == {track.currency for track in tracks}
    assert {None, 20, 400} <= {track.bpm for track in tracks}
    assert {None, "Major", "Minor"} == {track.scale for track in tracks}


@pytest.mark.usefixtures("made")
def test_the_edges_of_the_catalog_are_there(store: Store) -> None:
    def look() -> None:
        tracks = list(Track.select())
        credits_ = [row[0] for row in TrackArtist.select(TrackArtist.track).tuples().iterator()]
        assert max(credits_.count(track.id) for track in tracks) == 3
        assert any(track.album is None for track in tracks)
        assert {999, 3_599_999, 3_600_000, 64_800_000} <= {track.duration for track in tracks}
        assert max(len(track.name) for track in tracks) == 255
        assert Album.select().where(Album.id.not_in([track.album for track in tracks if track.album])).count() == 1
        assert Album.select().where(Album.release_date.is_null()).count()
        assert AlbumArtist.select().where(AlbumArtist.position == 1).count() == 1
        assert Artist.select().where(Artist.manager.is_null()).count() == 3
        assert {artist.verified for artist in Artist.select()} == {True, False}
        assert TrackTag.select().count() > 4
        label = User.get(User.display_name == "Northern Lights Records")
        assert Artist.select().where(Artist.manager == label.id).count() == 11

    store.read(look).result()


@pytest.mark.usefixtures("made")
def test_names_in_every_supported_script_exist(store: Store) -> None:
    names = store.read(lambda: [row[0] for row in Track.select(Track.name).tuples().iterator()]).result()
    found = {unicodedata.name(sign, "").split()[0] for name in names for sign in name if sign.isalpha()}
    scripts = {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "CJK", "HIRAGANA", "HANGUL"}
    assert found >= scripts


@pytest.mark.usefixtures("made")
def test_comments_stand_in_thread_order_with_room_between_them(store: Store) -> None:
    def thread() -> list[tuple[Any, ...]]:
        columns = (Comment.position, Comment.depth, Comment.deleted, Comment.place)
        rag = Track.get(Track.name == "Maple Leaf Rag").id
        return list(Comment.select(*columns).where(Comment.track == rag).order_by(Comment.place).tuples().iterator())

    rows = store.read(thread).result()
    assert [row[:3] for row in rows] == [
        (3, 0, True),
        (3, 1, False),
        (3, 1, True),
        (3, 2, False),
        (12, 0, False),
        (12, 1, False),
        (12, 2, False),
        (12, 3, False),
        (12, 4, True),
        (12, 5, False),
        (12, 6, False),
        (12, 1, False),
    ]
    places = [row[3] for row in rows]
    assert all(later - earlier == GAP for earlier, later in itertools.pairwise(places))


@pytest.mark.usefixtures("made")
def test_a_deleted_comment_has_no_text_and_a_reply_the_position_of_its_root(store: Store) -> None:
    comments: list[Any] = store.read(lambda: list(Comment.select())).result()
    by_id = {comment.id: comment for comment in comments}
    assert [comment.content for comment in comments if comment.deleted] == ["", "", ""]
    for comment in comments:
        if comment.parent:
            parent = by_id[comment.parent]
            assert comment.depth == parent.depth + 1
            assert (comment.track, comment.position) == (parent.track, parent.position)
            assert comment.created_at > parent.created_at


def test_the_files_are_found_in_the_tree_and_in_an_installed_package(tmp_path: Path) -> None:
    tree = Path(__file__).resolve().parents[3]
    assert fixtures.folder() == tree / "fixtures"
    package = tmp_path / "musicsvc"
    (package / "_fixtures").mkdir(parents=True)
    assert fixtures.folder(package) == package / "_fixtures"
