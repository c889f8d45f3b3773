"""Deleted accounts and erased listeners leave every figure as it was, and nothing that names them."""

import random
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from peewee import ForeignKeyField

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Failure, MissingReference, NotFound, Unauthenticated
from musicsvc.store import models, opening
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments
from musicsvc.store.engagement import comments, likes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Comment, Conversation, ImportRun, Message, User
from musicsvc.store.people import deletion
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import blocks
from tests.conftest import NOW
from tests.store.engagement.test_engagement_days import WRONG_COUNTERS
from tests.support.examples import examples
from tests.support.import_files import import_file
from tests.support.reported_plays import account, figures, report, world
from tests.support.undoing import LABEL, OPTIONS, require_sound

STEPS = some.lists(some.tuples(some.integers(0, 8), some.integers(0, 10_000)), min_size=4, max_size=24)
DELETE, ERASE, ROLL_UP, LIKE, COMMENT = range(5)  # numbers of steps; those above are plays


WITHOUT_AUTHOR = "SELECT id FROM comment WHERE user_id IS NULL AND NOT deleted"


class Play:
    """Plays a sequence of steps by three accounts, of which deleted ones come back as others with their e-mail."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.write(world).result()
        self.actors = [self._account(number) for number in range(3)]

    def _account(self, number: int) -> Identity:
        make = partial(account, reports_plays=True, email=f"p{number}@label.test")
        return self.store.write(make).result()

    def step(self, kind: int, number: int) -> None:
        chance = random.Random(number)
        at = number % 3
        actor, track = self.actors[at], chance.randrange(1, 4)
        if kind == DELETE:
            self.unchanged(partial(deletion.delete, actor.user_id, now=NOW))
            self.actors[at] = self._account(at)
        elif kind == ERASE:
            self.unchanged(partial(deletion.erase_listener, f"p{chance.randrange(2)}", now=NOW))
        elif kind == ROLL_UP:
            self.store.write(partial(blocks.roll_up, number % 9)).result()
        elif kind == LIKE:
            given = chance.choice((likes.LIKE, likes.REPOST))
            self.store.write(partial(likes.add, given, track, now=NOW - at * DAY, actor=actor)).result()
        elif kind == COMMENT:
            self.store.write(partial(self._comment, track, chance, actor)).result()
        else:
            who, day = chance.choice((None, "p0", "p1")), chance.choice((0, 1, 2, 9))
            play = ReportedPlay(track, NOW - day * DAY - chance.randrange(5) * SLOT, who, chance.randrange(9))
            report(self.store, [play], actor)

    def unchanged(self, unit: Callable[[], Any]) -> None:
        before = figures(self.store)
        try:
            self.store.write(unit).result()
        except NotFound:
            assert "erase" in str(unit)
        assert figures(self.store) == before

    @staticmethod
    def _comment(track: int, chance: random.Random, actor: Identity) -> None:
        found = [row for (row,) in fetch("SELECT id FROM comment WHERE track_id = ? AND NOT deleted", track)]
        comments.create(track, "x", parent_id=chance.choice([None, *found]), now=NOW, actor=actor)


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_figures_stay_whoever_is_deleted_or_erased_and_equal_a_recount(
    new_database: Callable[[], str], steps: list[tuple[int, int]]
) -> None:
    with opening.connect(new_database()) as store:
        play = Play(store)
        for kind, number in ((8, 1), (8, 2), (8, 3), (LIKE, 0), *steps):
            play.step(kind, number)
        require_sound(store)
        assert store.read(partial(fetch, WRONG_COUNTERS)).result() == []
        assert store.read(partial(fetch, WITHOUT_AUTHOR)).result() == []


@pytest.mark.slow
@pytest.mark.usefixtures("world")
def test_no_row_names_a_deleted_account_and_others_keep_what_is_theirs(store: Store) -> None:
    kept = store.write(partial(users.create, "kept@label.test", admin=True, now=NOW)).result()
    people = store.read(lambda: [*User.select().where(User.id != kept.id)]).result()
    assert len(people) > 3
    before = store.read(_figures_of_all).result()
    messages = store.read(lambda: {row.id: row.user for row in Message.select()}).result()
    for user in people:
        store.write(partial(_ask_for_access, user)).result()
        found = store.read(_texts).result()
        assert user.email in found
        belongings = store.read(partial(deletion.count_belongings, user)).result()
        unit = partial(deletion.delete, user.id, artists_to=kept, now=NOW)
        assert store.write(unit).result() == belongings
        with pytest.raises(NotFound, match=f"There is no account {user.id}"):
            store.write(unit).result()
        assert user.email not in store.read(_texts).result()
        assert store.read(partial(_references, user.id)).result() == []
        messages = {key: by for key, by in messages.items() if by != user.id}
        assert store.read(lambda: {row.id: row.user for row in Message.select()}).result() == messages
    require_sound(store)
    assert store.read(_figures_of_all).result() == before
    assert store.read(lambda: (Conversation.select().count(), Comment.select().count())).result() == (0, 0)


def _ask_for_access(user: User) -> None:
    names = ("use_case", "volume", "organization")
    asked = dict.fromkeys(names, "x") | {"email": user.email, "email_key": user.email_key}
    models.AccessRequest.create(state="denied", created_at=NOW, **asked)


def _figures_of_all() -> list[Any]:
    return list(models.TrackPlays.select().order_by(models.TrackPlays.track).tuples())


def _texts() -> set[object]:
    """Return all values of all tables."""
    return {value for table in models.tables() for row in table.select().tuples().iterator() for value in row}


def _references(user_id: int) -> list[str]:
    """Return the tables with rows that refer to the account."""
    found = []
    for table in models.tables():
        columns: Any = table
        fields = [each for each in columns._meta.sorted_fields if isinstance(each, ForeignKeyField)]
        found += [
            each.name
            for each in fields
            if each.rel_model is User and table.select().where(each == user_id).limit(1).count()
        ]
    return found


def test_an_erased_listener_is_a_new_one_when_it_plays_again(store: Store) -> None:
    store.write(world).result()
    reporter = store.write(partial(account, reports_plays=True)).result()
    play = ReportedPlay(1, NOW, "fan")
    report(store, [play, ReportedPlay(1, NOW - DAY), ReportedPlay(2, NOW, "other")], reporter)
    erased = store.write(partial(deletion.erase_listener, "fan", now=NOW)).result()
    with pytest.raises(NotFound, match="There is no listener with this name"):
        store.write(partial(deletion.erase_listener, "fan", now=NOW)).result()
    assert not {"fan", "opaque:fan"} & store.read(_texts).result()
    assert report(store, [play], reporter).accepted == 1
    plays = store.read(lambda: {(row.track, row.listener) for row in models.Play.select()}).result()
    assert len({listener for track, listener in plays if track == 1} - {erased}) == 2
    store.write(partial(deletion.delete, reporter.user_id, now=NOW)).result()
    require_sound(store)


def test_the_last_administrator_and_managers_of_artists_stay(store: Store) -> None:
    def fill() -> list[User]:
        return [users.create(f"{name}@label.test", admin=True, now=NOW) for name in ("ann", "ben", "cleo")]

    ann, ben, cleo = store.write(fill).result()
    store.write(partial(users.suspend, cleo, now=NOW)).result()
    store.write(partial(users.set_admin, ben, admin=False, now=NOW)).result()
    for leave in (partial(users.set_admin, ann, admin=False, now=NOW), partial(deletion.delete, ann.id, now=NOW)):
        with pytest.raises(Conflict, match=r"ann@label.test is the last administrator"):
            store.write(leave).result()
    store.write(partial(users.set_admin, ben, admin=True, now=NOW)).result()
    store.write(world).result()
    store.write(lambda: [assignments.assign(number, ann, now=NOW) for number in (1, 2)]).result()
    with pytest.raises(Conflict, match=r"manages Artist 1, Artist 2\. Hand these artists over first, or delete"):
        store.write(partial(deletion.delete, ann.id, now=NOW)).result()
    store.write(partial(deletion.delete, ann.id, artists_to=ben, now=NOW)).result()
    assert store.read(lambda: [artists.get(number).manager_id for number in (1, 2)]).result() == [ben.id] * 2


def test_two_deletions_at_once_delete_one_account_and_keep_one_administrator(store: Store) -> None:
    def fill() -> list[User]:
        return [users.create(f"{name}@label.test", admin=True, now=NOW) for name in ("ann", "ben")]

    ids = [user.id for user in store.write(fill).result()]
    done: list[Future[Any]] = [store.write(partial(deletion.delete, user, now=NOW)) for user in (*ids, *ids)]
    outcomes = [type(each.exception()) for each in done]
    assert outcomes.count(type(None)) == 1
    assert set(outcomes) == {type(None), Conflict, NotFound}
    assert store.read(lambda: User.select().where(User.admin).count()).result() == 1


def test_what_an_account_sends_while_it_is_deleted_is_refused(store: Store) -> None:
    store.write(world).result()
    fan = store.write(partial(account, reports_plays=False)).result()
    report(store, [ReportedPlay(1, NOW - DAY)], fan)
    store.write(partial(deletion.delete, fan.user_id, now=NOW)).result()
    with pytest.raises(Unauthenticated):
        report(store, [ReportedPlay(1, NOW)], fan)
    sent = partial(likes.add, likes.LIKE, 1), partial(comments.create, 1, "More!")
    for unit in sent:
        with pytest.raises(MissingReference):
            store.write(partial(unit, now=NOW, actor=fan)).result()
    require_sound(store)


@pytest.mark.slow
def test_an_import_ends_when_its_account_is_deleted(store: Store, tmp_path: Path) -> None:
    store.write(world).result()
    label = store.write(partial(account, reports_plays=True, email=LABEL)).result()
    other = store.write(partial(users.create, "other@label.test", now=NOW)).result()
    gone: list[int] = []

    def delete_soon(summary: Any) -> None:
        if summary.rows and not gone:
            gone.append(label.user_id)
            store.write(partial(deletion.delete, label.user_id, artists_to=other, now=NOW)).result()

    rows = [{"track": f"Rag {number}", "artist": f"Trio {number % 7}"} for number in range(6_000)]
    with pytest.raises(Failure, match=r"The account of import 1 was deleted while it ran\."):
        import_file(store, tmp_path / "songs.jsonl", OPTIONS["catalog"](), rows, on_progress=delete_soon)
    run = store.read(lambda: ImportRun.get_by_id(1)).result()
    assert (run.state, run.rows, run.user) == ("stopped", 5000, label.user_id)
    assert store.read(lambda: {artists.get(number).manager_id for number in range(3, 10)}).result() == {other.id}
    require_sound(store)
