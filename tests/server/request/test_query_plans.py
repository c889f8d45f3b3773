"""No statement of any endpoint reads or sorts a whole table that can grow, whatever the data: their query plans."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import apsw
import apsw.ext
import pytest

from musicsvc.server.routes.route import V1
from musicsvc.store.engine import bulk, tables
from musicsvc.store.engine.list_blocks import LONGEST
from musicsvc.store.engine.sqlite import files
from musicsvc.store.models import Album, Comment, Track
from tests.paging import world as worlds
from tests.paging.lists import LISTS
from tests.rights.table import BODIES, RIGHTS, endpoint, key, path_of
from tests.rights.world import OWNER
from tests.server.request.test_queries import MANY, PAGED, UNPAGED, add_owner
from tests.support.endpoint_cases import TESTED_ROUTES
from tests.support.page_client import add_account, page_client
from tests.support.shared_server import Shared, on_shared_loop

LONG = 3 * LONGEST
# Tables of a constant size, and statements whose rows have another bound: a part of their text, and the reason.
ALLOWED = {
    "FROM list_block WHERE list =": "counts only lists of at most 4,096 rows",
    "play_progress|table_version|schema_migration|sqlite_master|pragma_table_list|pg_tables|pg_class": "constant sizes",
    r"SELECT COUNT\(1\) FROM|ORDER BY \"t1\".\"last_used_at\" DESC": "once per start",
    "DELETE FROM play_count WHERE key >=": "once per week",
    '"email_key" = ': "the accounts of one mailbox",
    r'ORDER BY COALESCE\("t3"."plays"': "artists with at most 4,096 tracks; others have ranks",
    'ORDER BY "t1"."release_date"': "the albums of one artist",
    "ORDER BY release_date DESC, id DESC LIMIT": "the albums of one account",
    'ORDER BY "t1"."last_at"': "the conversations of one account",
    '"external_id" = ': "the tracks with one external id: at most one per account",
    "listen_progress": "constant size",
    r'"merged" AS "t1" INNER JOIN "artist"': "the artists that were merged",
    r'"pending_listen".* WHERE \(+"\w+"."user_id" = ': "the listens of one account: at most 10,000 wait",
    r'"pending_listen" AS "t1" WHERE \(+"t1"."artist_key" (IN|= ANY)': "the listens that wait for one account",
    "DELETE FROM name_change": "the names that one transaction has changed",
    "FROM (track|artist)_search WHERE": "the rows whose names contain the text, found by an index",
    "name LIKE .* ORDER BY key": "the rows whose names contain the text, found by an index",
    "ORDER BY p.played_at LIMIT 1 OFFSET": "the plays that one track, album or artist has in an hour",
    r'"artist_id" != "t\d"."artist_id"': "the tracks that one artist has with others",
    r'"artist" AS "t1" WHERE \("t1"."manager_id"': "the artists of one account",
    'FROM "playlist_invite" AS': "the invitations of one account, or to one playlist",
    r"AS section, CAST\(": "explanations count single plays again, in the line of figures",
    "SELECT day FROM found": "the days on which anything was played",
    "ORDER BY plays DESC LIMIT 1 OFFSET": "the counts of one account's tracks on some days",
    '"t1"."user_id" FROM "import_task"': "the files of a day, in the background once a minute",
    "DELETE FROM quota|SELECT key, ends FROM quota": "expired counts, deleted in the background and not by a request",
}
ENDED_BY_LIMIT = {"Limit", "Incremental Sort"}
# Scans of what a caller gives, or of the tracks that were found for it.
BOUNDED = "CONSTANT ROW|VALUES CLAUSE|json_each|(given|chosen) VIRTUAL TABLE|INDEX 0:=|members|coded"
INDEX_SCANS = {"Index Scan", "Index Only Scan"}
STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Collect the statements of all threads, each with a request that may have run it."""
    found: dict[str, str] = {"": "start"}
    note = tables.note

    def collect(statement: str) -> None:
        found.setdefault(statement, found[""])
        note(statement)

    for module in (tables, files):
        monkeypatch.setattr(module, "note", collect)
    return found


@pytest.mark.on_both
@pytest.mark.slow
@on_shared_loop
async def test_no_statement_of_any_endpoint_reads_or_sorts_a_table_that_can_grow(
    shared: Shared, texts: dict[str, str]
) -> None:
    for asked, token, body in requests(shared):
        texts[""] = asked
        method, path = asked.split(" ", 1)
        answer = await shared.client.holding(token)(method, path, body)
        assert answer.status < 500, asked
    read = {text: asked for text, asked in texts.copy().items() if STATEMENT.match(text) and "activity" not in text}
    assert len(read) > 200
    assert any("OFFSET" in text and ">=" in text for text in read), "no page was found by its block"
    explain = sqlite_problems if shared.store.url.startswith("sqlite") else postgres_problems
    found = {text: problems for text, problems in explain(shared, list(read)).items() if problems}
    wrong = {
        text: (read[text], problems)
        for text, problems in found.items()
        if not any(re.search(allowed, text) for allowed in ALLOWED)
    }
    assert wrong == {}


@pytest.mark.on_both
@on_shared_loop
async def test_ended_sessions_are_found_by_an_index(shared: Shared, texts: dict[str, str]) -> None:
    add_account(shared, "clara@plans.test")
    async with page_client(shared.client.root) as browser:
        assert (await browser.sign_in("clara@plans.test")).status == 303
    explain = sqlite_problems if shared.store.url.startswith("sqlite") else postgres_problems
    (ended,) = {text for text in texts if re.search('DELETE FROM "session" .*"last_used_at" <= ', text)}
    assert explain(shared, [ended]) == {ended: []}


def requests(shared: Shared) -> Iterator[tuple[str, str | None, Any]]:
    """Yield the method and path, token and body of requests to all endpoints, on short, empty and long lists."""
    rights = shared.world((OWNER,))
    for route in TESTED_ROUTES:
        for right in RIGHTS[key(route)].values():
            subject = rights.do(partial(right.make, rights, OWNER))
            body = None
            if route.body is not None:
                body = (right.body or BODIES[endpoint(route)])(rights, OWNER, subject)
            yield (
                f"{route.method} {path_of(route, subject)}{right.query}",
                rights.tokens[OWNER],
                body,
            )
    world = shared.store.write(partial(worlds.build, shared.client.root, shared.clock.now())).result()
    owner = shared.store.write(partial(add_owner, world, MANY)).result()
    for path, body in UNPAGED.items():
        yield path.format(**owner), owner["token"], body
    yield f"GET {V1}/playlists", world.tokens["cleo"], None  # who collaborates on no others
    shared.store.write(partial(lengthen, world)).result()
    for route in PAGED:
        for view in LISTS[route.path](world):
            token = view.caller and world.tokens[view.caller]
            for page in (1, len(view.rows), LONG // 2):
                yield f"GET {V1}/{view.at(f'perPage=1&page={page}')}", token, None


def lengthen(world: worlds.World) -> None:
    """Make lists long enough for blocks; in a unit of work."""
    bulk.insert(Album, ("name", "created_at"), [("Album", 1)] * LONG)
    bulk.insert(Track, ("name", "duration", "created_at"), [("Track", 1, 1)] * LONG)
    user, track = world.callers["ann"].user_id, world.tracks[0]["id"]
    names = ("track", "user", "content", "position", "depth", "place", "created_at")
    bulk.insert(Comment, names, [(track, user, "hm", 0, 0, 10**15 + each, 1) for each in range(LONG)])


def sqlite_problems(shared: Shared, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the scans and sorts of each statement. Without statistics SQLite assumes that every table is large."""
    connection = apsw.Connection(shared.store.url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA foreign_keys = 1")
    connection.create_scalar_function(bulk.NOTED, bulk.note_row)
    plans = {
        text: list(details(apsw.ext.query_info(connection, text, explain_query_plan=True).query_plan)) for text in texts
    }
    connection.close()
    return {text: [line for line in plan if is_unbounded(text, line, plan)] for text, plan in plans.items()}


def details(step: Any) -> Iterator[str]:
    """Yield the lines of a plan of SQLite."""
    yield str(step.detail)
    for each in step.sub or ():
        yield from details(each)


def is_unbounded(text: str, line: str, plan: Sequence[str]) -> bool:
    """Return whether a step of a plan may read many rows for few. A statement without LIMIT shows what it sorts.

    FTS5 finds a row by its id with INDEX 0:=.
    """
    sorts = any("TEMP B-TREE FOR ORDER BY" in each for each in plan)
    if line.startswith("SCAN ") and not re.search(BOUNDED, line):
        return sorts or "LIMIT" not in text
    return "TEMP B-TREE FOR ORDER BY" in line and "LIMIT" in text


def postgres_problems(shared: Shared, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the scans and sorts that PostgreSQL cannot avoid, however many rows the tables have."""
    import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

    found: dict[str, list[str]] = {text: [] for text in texts}
    with psycopg.connect(shared.store.url, autocommit=True) as connection:
        for off, steps in (("seqscan", unbounded_scans), ("sort", unbounded_sorts)):
            connection.execute("RESET ALL")
            for setting in (off, "hashjoin", "mergejoin"):
                connection.execute(f"SET enable_{setting} = off".encode())
            for text in texts:
                statement = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered(text)}"
                ((plan,),) = connection.execute(statement.encode()).fetchall()
                found[text] += steps(plan[0]["Plan"])
    return found


def numbered(text: str) -> str:
    """Return a statement for psycopg with the parameters of PostgreSQL: $1, $2 …"""
    parts = re.split(r"%(?:\(\w+\))?s", text)
    return "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)).replace("%%", "%") + parts[-1]


def unbounded_scans(plan: Any, above: str = "") -> Iterator[str]:
    """Yield the steps that read a whole table or index, but for those that LIMIT ends."""
    kind = plan["Node Type"]
    if kind == "Seq Scan" or (kind in INDEX_SCANS and "Index Cond" not in plan and above not in ENDED_BY_LIMIT):
        yield f"{kind} {plan['Relation Name']}"
    for each in plan.get("Plans", ()):
        yield from unbounded_scans(each, kind)


def unbounded_sorts(plan: Any, above: str = "") -> Iterator[str]:
    """Yield the sorts of which LIMIT drops most rows. A statement without LIMIT shows what it sorts."""
    if plan["Node Type"] == "Sort" and above == "Limit":
        yield f"Sort by {plan['Sort Key']}"
    for each in plan.get("Plans", ()):
        yield from unbounded_sorts(each, plan["Node Type"])
