"""Three nodes are upgraded one by one under load, with real builds: no request fails and nothing is lost."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from musicsvc.store import opening
from musicsvc.store.catalog import changes
from tests.faults import callers
from tests.faults.callers import Account, Connection
from tests.faults.nodes import Balancer, Traffic
from tests.releases.builds import Builder, Version
from tests.support.program import Program, until

pytestmark = pytest.mark.long
NODES = 3
CALLERS = 6
DELAY: Mapping[str, str] = {"MUSICSVC_SERVER__SHUTDOWN_DELAY": "1"}
MOODS = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE track ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")
    db.execute_sql("CREATE TABLE mood (comment_id BIGINT REFERENCES comment (id) ON DELETE CASCADE)")
    db.execute_sql("CREATE INDEX mood_comment ON mood (comment_id)")
"""
PREPARE = f"""
import json
from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import callers
with opening.connect("{{url}}") as store:
    print(json.dumps(store.write(lambda: callers.prepare({CALLERS}, Clock().now())).result()))
"""

ADD_ARTIST = """
import json
from musicsvc.store import opening
from musicsvc.store.models import Artist
with opening.connect("{url}") as store:
    print(json.dumps(store.write(lambda: Artist.create(name="Old", created_at=1).id).result()))
"""


class Cluster:
    """Nodes of two versions on one database, behind a balancer."""

    def __init__(self, folder: Path, balancer: Balancer, stack: ExitStack) -> None:
        self._folder = folder
        self._balancer = balancer
        self._stack = stack
        self._started = 0

    def start(self, version: Version) -> Program:
        self._started += 1
        program = self._stack.enter_context(version.serve(self._folder / f"node{self._started}"))
        self._balancer.add(program.root)
        return program

    def stop(self, program: Program, *, notices: bool) -> None:
        """Stop a node with SIGTERM; first take it out of the balancer, unless that `notices` it by itself."""
        root = program.root
        if not notices:
            self._balancer.take_out(root)
        program.process.terminate()
        assert program.process.wait(60) == 0, program.err
        self._balancer.remove(root)

    def revokes(self, version: Version, name: str) -> None:
        """Check that the command of this version revokes a token at every node."""
        made = version("token", "create", "person0@label.test", "--name", name, "--json")
        assert self._asked(made["token"]) == {200}
        version("token", "revoke", str(made["id"]), "--json")
        until(lambda: self._asked(made["token"]) == {401})

    def _asked(self, token: str) -> set[int]:
        """Return the statuses of the ready nodes to a request with the token."""
        found = set()
        for root in self._balancer.ready():
            connection = Connection(int(root.rpartition(":")[2]))
            found.add(connection.ask("GET", "/api/v1/users/me", token, b"")[0])
            connection.close()
        return found


@pytest.fixture(params=["0.1.0", "made"])
def versions(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> tuple[Version, Version, bool]:
    """Return two versions, and whether the first one has `server.shutdown_delay`."""
    build = Builder(tmp_path, url)
    if request.param == "made":
        return build("9.1.0", variables=DELAY), build("9.2.0", {"9002_moods": MOODS}, DELAY), True
    return build.released(request.param), build("9.1.0", variables=DELAY), False


@pytest.fixture
def url(new_database: Callable[..., str]) -> str:
    return new_database(migrated=False)


@pytest.mark.only_on("postgres")
def test_nodes_are_upgraded_one_by_one_and_no_request_fails(
    versions: tuple[Version, Version, bool],
    url: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    old, new, notices = versions
    old("init", "--json")
    accounts = [Account(*each) for each in old.evaluate(PREPARE.format(url=url))]
    with ExitStack() as stack:
        balancer = stack.enter_context(Balancer())
        cluster = Cluster(tmp_path, balancer, stack)
        nodes = [cluster.start(old) for _ in range(NODES)]
        with Traffic(balancer, accounts) as traffic:
            traffic.go_on()
            assert new("db", "upgrade", "--json")["migrations"]
            assert len(balancer.ready()) == NODES
            traffic.go_on()
            for number, node in enumerate(nodes):
                cluster.revokes(old, f"old {number}")
                cluster.stop(node, notices=notices)
                cluster.start(new)
                traffic.go_on()
                cluster.revokes(new, f"new {number}")
        assert balancer.failures + balancer.unavailable + traffic.odd == []
    with opening.connect(url) as store:
        assert callers.faults(store, traffic.callers) == []
    record_property("acknowledged", traffic.acknowledged)
    record_property("read", traffic.read)


def test_changes_by_the_program_of_the_first_release_are_listed(tmp_path: Path, url: str) -> None:
    build = Builder(tmp_path, url)
    old, new = build.released("0.1.0"), build("9.1.0")
    old("init", "--json")
    new("db", "upgrade", "--json")
    with opening.connect(url) as store:
        cursor = store.read(partial(changes.since, None)).result().cursor
        made = old.evaluate(ADD_ARTIST.format(url=url))
        (row,) = store.read(partial(changes.since, cursor)).result().rows
    assert (row.noun, row.id, row.change) == ("artist", made, "created")
