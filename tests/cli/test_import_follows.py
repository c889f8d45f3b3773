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
from tests.cli.conftest import Json, Run
from tests.support.command import run_in_process
from tests.support.serving import Client

EDGES = "follower,followed\n1,2\n2,1\n1,1\n2,\n"


def test_refused_lines_are_told_and_missing_accounts_are_made_when_asked_for(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text(EDGES)
    done = run_in_process(["import", "follows", str(file)])
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lines 2-3 (2 rows): follower and followed: no such account; --create-missing creates it: '1', '2'",
        "line 4: an account cannot follow itself",
        "line 5: followed is missing",
        "4 rows read, all of them refused.",
        "Import 1. To undo it: musicsvc import undo 1",
    ]
    done = run("import", "follows", str(file), "--create-missing")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["kind", "new", "changed", "repeated", "refused"],
        ["accounts", "2", "0", "2", "0"],
        ["follows", "2", "0", "0", "2"],
    ]
    assert done.stderr.splitlines()[-2] == "4 rows read, 2 of them refused."


def test_json_holds_it_all_and_a_dry_run_writes_nothing(ask: Json, tmp_path: Path, store: Store) -> None:
    file = tmp_path / "edges.csv"
    file.write_text(EDGES)
    shown = ask("import", "follows", str(file), "--create-missing", "--dry-run")
    assert store.read(User.select().count).result() == 0
    done = ask("import", "follows", str(file), "--create-missing")
    assert shown == done | {"dry_run": True, "import": None}
    assert done == {
        "import": done["import"],
        "file": str(file),
        "dry_run": False,
        "rows": 4,
        "accounts": {"new": 2, "changed": 0, "repeated": 2, "refused": 0},
        "follows": {"new": 2, "changed": 0, "repeated": 0, "refused": 2},
        "refused": [
            {"line": 4, "reason": "an account cannot follow itself"},
            {"line": 5, "reason": "followed is missing"},
        ],
        "notes": {},
        "unused_columns": [],
    }


def test_wrong_usage_is_exit_2(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text(EDGES)
    assert "follower, followed" in run("import", "follows", str(file), "--map", "a=b", expect=2).stderr
    run("import", "follows", expect=2)


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
