"""The tables noted for each statement of every endpoint contain those that SQLite itself reports for it."""

import re

import apsw
import apsw.ext
import pytest

from musicsvc.store.engine import bulk, tables
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.tables import Tables, current_tables
from tests.rights.table import BODIES, RIGHTS, endpoint, key
from tests.rights.world import OWNER
from tests.support.endpoint_cases import TESTED_ROUTES
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = pytest.mark.only_on("sqlite")
LEFT_OUT = re.compile(r"\b(?:activity|table_version)")  # another file, and what no answer shows
COUNTS = {
    "list_block",
    "track_rank",
    "name_change",
    "catalog_change",
}  # changed by triggers; readers read the tables too that they follow from
CHANGES = {"SQLITE_INSERT", "SQLITE_UPDATE", "SQLITE_DELETE"}


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Collect the statements of all threads, beside what notes them."""
    found: set[str] = set()
    note = tables.note

    def collect(statement: str) -> None:
        found.add(statement)
        note(statement)

    for module in (tables, files):
        monkeypatch.setattr(module, "note", collect)
    return found


@pytest.mark.slow
@on_shared_loop
async def test_every_table_that_a_statement_reads_or_changes_is_noted(shared: Shared, texts: set[str]) -> None:
    world = shared.world((OWNER,))
    asked = 0
    for route in TESTED_ROUTES:
        for right in RIGHTS[key(route)].values():
            subject = world.do(lambda right=right: right.make(world, OWNER))  # type: ignore[misc]  # bound in the loop
            body = None
            if route.body is not None:
                body = (right.body or BODIES[endpoint(route)])(world, OWNER, subject)
            path = re.sub(r"\{\w+\}", str(subject), route.path) + right.query
            asked += (await shared.client.holding(world.tokens[OWNER])(route.method, path, body)).status < 300
    assert asked > len(TESTED_ROUTES) * 0.9

    known = shared.store.read(current_tables).result()
    # A copy, because other threads still run statements.
    checked = {text: reported(shared, text, known) for text in texts.copy() if not LEFT_OUT.search(text)}
    wrong = {
        text: (read - known.mentioned(text), changed - known.changed(text))
        for text, (read, changed) in checked.items()
        # What a changing statement reads beside is not cached.
        if not (changed or read <= known.mentioned(text)) or not changed <= known.changed(text)
    }
    assert wrong == {}
    assert {text for text in checked if known.changed(text) == known.names} == set(), "these would empty all caches"
    assert any(len(changed) > 1 for _, changed in checked.values()), "no actions of foreign keys"
    assert len(set().union(*(changed for _, changed in checked.values()))) > 25
    assert len(set().union(*(read for read, _ in checked.values()))) > 30


def reported(shared: Shared, text: str, known: Tables) -> tuple[set[str], set[str]]:
    """Return the tables that SQLite reads and changes for the statement, with the actions of foreign keys."""
    connection = apsw.Connection(shared.store.url.removeprefix("sqlite:///"))
    connection.pragma("foreign_keys", 1)
    connection.create_scalar_function(bulk.NOTED, bulk.note_row)
    actions = apsw.ext.query_info(connection, text, actions=True).actions or []
    connection.close()
    read = {str(action.table_name) for action in actions if action.action_name == "SQLITE_READ"}
    changed = {str(action.table_name) for action in actions if action.action_name in CHANGES}
    return read & known.names, (changed & known.names) - COUNTS
