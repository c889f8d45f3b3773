"""The order of comments in threads, whatever was written and deleted before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from musicsvc.clock import Clock
from musicsvc.errors import Invalid, NotFound
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import comments
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Comment, Track
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.query_count import statements
from tests.support.rolled_back import rolled_back

MANY = 10_000


@dataclass
class Node:
    """A comment of the model; `id` is the id of the real comment."""

    id: int
    depth: int = -1
    position: int = 0
    parent: Node | None = None
    author: int = 0
    deleted: bool = False
    replies: list[Node] = field(default_factory=list)

    def read(self) -> Iterator[Node]:
        """All replies, in thread order."""
        order = self.replies if self.parent else sorted(self.replies, key=lambda node: node.position)
        for node in order:
            yield node
            yield from node.read()

    def delete(self) -> None:
        """Mark it as deleted if it has replies, else remove it and deleted parents without other replies."""
        self.deleted = True
        node = self
        while node.parent and node.deleted and not node.replies:
            node.parent.replies.remove(node)
            node = node.parent


def _identity(user_id: int) -> Identity:
    return Identity._make((user_id, "ann", None, *[None] * (len(Identity._fields) - 3)))


def _world(clock: Clock) -> tuple[int, Identity]:
    """A track and an account that comments on it."""
    track = int(Track.create(name="Air", duration=1, created_at=0).id)
    return track, _identity(users.create("ann@label.test", now=clock.now()).id)


@pytest.fixture
def thread(store: Store, clock: Clock) -> tuple[int, Identity]:
    return store.write(lambda: _world(clock)).result()


def _rows(track: int) -> list[Any]:
    found, number = [], 1
    while rows := comments.list_by_track(track, Page(number, 7)).rows:
        found += rows
        number += 1
    return found


STEPS = st.lists(
    st.tuples(st.sampled_from(["root", "reply", "reply", "reply", "last", "delete", "leave"]), st.integers(0, 50)),
    max_size=40,
)

LEAVING = [("root", 1), ("root", 3), ("reply", 3), ("reply", 1), ("last", 2), ("root", 4), ("reply", 6), ("leave", 0)]


@pytest.mark.parametrize("gap", [2, 7, comments.GAP])
def test_a_thread_is_read_as_a_tree_whatever_was_written_and_deleted(
    store: Store, clock: Clock, bounds: Bounds, gap: int
) -> None:
    bounds(comment_gap=gap, comment_last=1 << (62 if gap > 7 else 12))

    @settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(STEPS)
    @example([*LEAVING, *LEAVING])
    def run(steps: list[tuple[str, int]]) -> None:
        rolled_back(store, lambda: _play(steps, clock))

    run()


def _play(steps: list[tuple[str, int]], clock: Clock) -> None:
    """Apply the same operations to the store and to the model, and compare them."""
    track, ann = _world(clock)
    bob = _identity(users.create("bob@label.test", now=clock.now()).id)
    top = Node(0)
    for step, number in steps:
        nodes = list(top.read())
        alive = [node for node in nodes if not node.deleted]
        author = bob if number % 3 else ann
        if step == "delete" and nodes:
            node = nodes[number % len(nodes)]
            comments.delete(Comment.get_by_id(node.id))
            if not node.deleted:
                node.delete()
        elif step in {"reply", "last"} and alive:
            parent = alive[-1] if step == "last" else alive[number % len(alive)]
            row = comments.create(track, "x", parent_id=parent.id, now=0, actor=author)
            parent.replies.append(Node(row.id, parent.depth + 1, parent.position, parent, author.user_id))
        elif step == "root":
            row = comments.create(track, "x", position=number % 5, now=0, actor=author)
            top.replies.append(Node(row.id, 0, number % 5, top, author.user_id))
        elif step == "leave":
            comments.delete_all(bob.user_id)
            for node in alive:
                if node.author == bob.user_id:
                    node.delete()
        expected = [(node.id, node.depth, node.position, node.deleted) for node in top.read()]
        assert [(row.id, row.depth, row.position, row.deleted) for row in _rows(track)] == expected
        places = [place for (place,) in Comment.select(Comment.place).where(Comment.track == track).tuples().iterator()]
        assert len(set(places)) == len(places)


@pytest.mark.parametrize("position", [40, 50], ids=["before many", "after many"])
def test_room_for_a_comment_is_made_among_its_neighbours(
    store: Store, thread: tuple[int, Identity], position: int
) -> None:
    """Few get another place, however many the track has: an account can ask for it with every few of its own."""
    track, ann = thread

    def places() -> dict[int, int]:
        return dict(Comment.select(Comment.id, Comment.place).where(Comment.track == track).tuples().iterator())

    def run() -> None:
        values = {"track": track, "user": ann.user_id, "content": "x", "position": 50, "depth": 0, "created_at": 0}
        rows = [{**values, "place": number * comments.GAP} for number in range(1, 1001)]
        Comment.insert_many(rows).execute()
        chain: list[int | None] = [None]
        comments.create(track, "last", position=60, now=0, actor=ann)
        for _ in range(7):
            chain.append(comments.create(track, "x", parent_id=chain[-1], position=position, now=0, actor=ann).id)
        moved = 0
        for parent in [*chain[1:], *chain[:0:-1]] * 3:
            before = places()
            comments.create(track, "x", parent_id=parent, now=0, actor=ann)
            after = places()
            changed = sum(after[each] != place for each, place in before.items())
            moved += changed > 0
            assert changed <= 100
        assert moved

    rolled_back(store, run)


def test_comments_of_a_deleted_account_cost_no_statement_for_each_track(
    store: Store, thread: tuple[int, Identity]
) -> None:
    track, ann = thread

    def comment() -> int:
        tracks = [track, *(int(Track.create(name="Air", duration=1, created_at=0).id) for _ in range(20))]
        for each in tracks:
            for depth in range(2):
                Comment.create(
                    track=each, user=ann.user_id, content="x", position=0, depth=depth, place=1 + depth, created_at=0
                )
        kept = Comment.create(track=track, content="a reply", position=0, depth=2, place=3, created_at=0)
        return int(kept.id)

    def delete() -> int:
        with statements() as found:
            comments.delete_all(ann.user_id)
        return len(found)

    kept = store.write(comment).result()
    assert 0 < store.write(delete).result() < 10
    assert [row.depth for row in store.read(lambda: _rows(track)).result()] == [0, 1, 2]
    assert store.read(lambda: Comment.select().count()).result() == 3
    assert store.read(lambda: Comment.get_by_id(kept).content).result() == "a reply"


@pytest.mark.only_on("sqlite")
def test_a_merge_reads_no_comments_of_other_tracks(store: Store, thread: tuple[int, Identity]) -> None:
    track, ann = thread

    def merge() -> list[str]:
        target = int(Track.create(name="Air", duration=1, created_at=0).id)
        comments.create(track, "x", now=0, actor=ann)
        with statements() as found:
            comments.move(track, target)
        (update,) = [each for each in found if each.sql.startswith("UPDATE")]
        plan = current().execute_sql(f"EXPLAIN QUERY PLAN {update.sql}", update.params).fetchall()
        return [row[3] for row in plan if row[3].startswith("SEARCH")]

    searches = store.write(merge).result()
    assert len(searches) == 3
    assert not any("AUTOMATIC" in each or "parent_id" in each for each in searches), searches


def _create(track: int, ann: Identity, parent: int | None = None, **more: Any) -> Callable[[], int]:
    """Return a transaction that creates a comment and returns its id."""
    return lambda: comments.create(track, **{"content": "x", "parent_id": parent, "now": 0, "actor": ann} | more).id


def _delete(comment_id: int) -> Callable[[], None]:
    """Return a transaction that deletes the comment if it still exists."""

    def unit() -> None:
        if (comment := Comment.get_or_none(Comment.id == comment_id)) is not None:
            with suppress(NotFound):
                comments.delete(comment)

    return unit


def test_a_comment_that_is_removed_after_it_was_read_cannot_be_deleted(
    store: Store, thread: tuple[int, Identity]
) -> None:
    read = store.write(lambda: Comment.get_by_id(_create(*thread)())).result()
    store.write(_delete(read.id)).result()

    with pytest.raises(NotFound):
        store.write(lambda: comments.delete(read)).result()


def test_comments_of_many_at_once_all_stand_in_their_thread(
    store: Store, thread: tuple[int, Identity], bounds: Bounds
) -> None:
    bounds(comment_gap=4, comment_last=1 << 12)
    root = store.write(_create(*thread, position=50)).result()

    def write() -> None:
        for number in range(10):
            store.write(_create(*thread, root if number % 2 else None, position=50)).result()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    rows = store.read(lambda: _rows(thread[0])).result()
    assert [row.depth for row in rows] == [0] + [1] * 40 + [0] * 40


def test_a_reply_to_what_is_deleted_meanwhile_is_refused_or_keeps_its_parent(
    store: Store, thread: tuple[int, Identity]
) -> None:
    for _ in range(20):
        root = store.write(_create(*thread)).result()
        deleted = store.write(_delete(root))
        reply = store.write(_create(*thread, root))
        deleted.result()
        if isinstance(error := reply.exception(), Invalid):
            assert error.errors["parent_id"] in {f"Comment {root} does not exist.", "That comment was deleted."}
        else:
            assert [row.deleted for row in store.read(lambda: _rows(thread[0])).result()] == [True, False]
            store.write(_delete(reply.result())).result()
        assert store.read(lambda: _rows(thread[0])).result() == []


def _fill(track: int, ann: Identity, shape: str) -> None:
    """Create a root with a chain of replies, or with the same number side by side, and a second root."""
    rows, first = [], int(comments.create(track, "first", position=10, now=0, actor=ann).id)
    for number in range(1, MANY - 1):
        parent = first if shape == "wide" else first + number - 1
        depth = 1 if shape == "wide" else number
        rows.append((first + number, track, ann.user_id, parent, "x", 10, depth, False, (number + 1) << 40, 0))
    columns = "id, track_id, user_id, parent_id, content, position, depth, deleted, place, created_at"
    signs = ", ".join([current().param] * 10)
    connection = current().connection()
    with_many = connection if hasattr(connection, "executemany") else connection.cursor()
    with_many.executemany(f"INSERT INTO comment ({columns}) VALUES ({signs})", rows)
    if current().for_update:
        current().execute_sql("SELECT setval(pg_get_serial_sequence('comment', 'id'), %s)", (first + MANY,))
    comments.create(track, "last", position=90, now=0, actor=ann)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["deep", "wide"])
def test_a_thread_of_ten_thousand_is_written_read_and_emptied_in_time(
    store: Store, thread: tuple[int, Identity], shape: str
) -> None:
    track, ann = thread
    store.write(lambda: _fill(track, ann, shape)).result()

    def page(number: int, size: int = 100) -> Any:
        def load() -> Any:
            found = comments.list_by_track(track, Page(number, size))
            return found, found.rows

        return store.read(load).result()[0]

    first, bottom = page(1).rows[0].id, page(100).rows[-2]
    began = time.process_time()
    for _ in range(20):
        store.write(_create(track, ann, first, content="top")).result()
        store.write(_create(track, ann, bottom.id, content="low")).result()
        store.write(_create(track, ann, content="root", position=50)).result()
    assert (time.process_time() - began) / 60 < 0.05

    assert page(1).total == MANY + 60
    tail = [row.content for number in range(100, 102) for row in page(number).rows][-61:]
    assert tail == ["low"] * 20 + ["top"] * 20 + ["root"] * 20 + ["last"]
    seen = [row.id for number in range(1, 104) for row in page(number).rows]
    assert len(seen) == len(set(seen)) == MANY + 60

    replies = [row.id for row in page(100).rows + page(101).rows if row.content in {"low", "top"}]
    store.write(lambda: _delete_at_once(first, bottom.id, shape)).result()
    for comment_id in [first, bottom.id, *replies]:
        assert page(1).total > 21
        store.write(_delete(comment_id)).result()
    assert [row.content for row in page(1).rows] == ["root"] * 20 + ["last"]


def _delete_at_once(first: int, bottom: int, shape: str) -> None:
    """Mark the replies of a chain as deleted, or remove replies side by side, between the two roots."""
    between = (Comment.content == "x") & Comment.id.not_in([first, bottom])
    change = Comment.update(deleted=True, content="") if shape == "deep" else Comment.delete()
    change.where(between).execute()
