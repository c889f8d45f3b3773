"""`musicsvc import follows`, and the recipe of docs/import.md on real data."""

import csv
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Follow, User
from tests.cli.conftest import Json
from tests.support.serving import Client


def recipe(file: Path) -> list[str]:
    """The command of docs/import.md, with this file."""
    document = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text("utf-8")
    (block,) = re.findall(r"```sh\n(musicsvc import follows lastfm_asia.*?)```", document, re.DOTALL)
    return [
        str(file) if part == "lastfm_asia_edges.csv" else part for part in shlex.split(block.replace("\\\n", " "))[1:]
    ]


@pytest.mark.slow
async def test_the_recipe_takes_the_real_network_and_its_lists_page_through_it_right(
    shared_data: Callable[[str], Path], ask: Json, store: Store, anonymous: Client, clock: MovableClock
) -> None:
    file = shared_data("lastfm_asia/lastfm_asia_edges.csv")
    with file.open(encoding="utf-8", newline="") as lines:
        edges = [(row["node_1"], row["node_2"]) for row in csv.DictReader(lines)]
    done = ask(*recipe(file))
    assert (done["accounts"]["new"], done["follows"]["new"], done["refused"]) == (7624, 27806, [])
    again = ask(*recipe(file))
    assert (again["accounts"]["new"], again["follows"]) == (
        0,
        {"new": 0, "changed": 0, "repeated": 27806, "refused": 0},
    )

    ids = store.read(lambda: dict(User.select(User.external_id, User.id).tuples().iterator())).result()
    kept = store.read(
        lambda: list(Follow.select(Follow.follower, Follow.followed).order_by(Follow.id).tuples())
    ).result()
    assert kept == [(ids[follower], ids[followed]) for follower, followed in edges]

    followed, follower = Counter(pair[1] for pair in edges), Counter(pair[0] for pair in edges)
    chosen = {followed.most_common(1)[0][0], follower.most_common(1)[0][0], "0", edges[-1][1]}
    for name in sorted(chosen):
        client = anonymous.holding(_token(store, clock, ids[name]))
        assert await _all(client, "followers") == [ids[one] for one, other in reversed(edges) if other == name]
        assert await _all(client, "followed-users") == [ids[other] for one, other in reversed(edges) if one == name]


def _token(store: Store, clock: MovableClock, user_id: int) -> str:
    def make() -> str:
        User.update(api_access=True).where(User.id == user_id).execute()
        return tokens.create(users.get(user_id), "test", now=clock.now())[1]

    return store.write(make).result()


async def _all(client: Client, path: str) -> list[int]:
    """Return the ids on all pages of a list of the caller, and check that each page has the right total."""
    found: list[int] = []
    totals = set()
    page = 1
    while rows := (answer := (await client.get(f"users/me/{path}?page={page}")).json["pagination"])["data"]:
        found += [row["id"] for row in rows]
        totals.add(answer["total"])
        page += 1
    totals.add(answer["total"])
    assert totals == {len(found)}
    assert len(found) == len(set(found))
    return found
