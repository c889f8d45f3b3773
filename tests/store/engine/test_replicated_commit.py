"""A commit on a primary with synchronous replication that no replica confirms."""

from collections.abc import Iterator

import pytest

from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag
from musicsvc.store.schema import schema
from tests.support import postgres

psycopg = pytest.importorskip("psycopg")
pytestmark = [pytest.mark.slow, pytest.mark.only_on("postgres")]


@pytest.fixture
def lonely() -> Iterator[Store]:
    """A store on a primary that waits for a replica, which does not exist, with each commit."""
    try:
        server = postgres.Server()
    except postgres.MissingError as error:
        pytest.skip(str(error))
    url = postgres.database_url(server.folder, "postgres")
    schema.upgrade(url)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
    with opening.connect(url) as store:
        yield store
    server.stop()


def test_a_commit_that_no_replica_confirms_in_time_is_not_acknowledged(lonely: Store) -> None:
    with pytest.raises(Unavailable, match="The database did not confirm the change"):
        lonely.write(lambda: Tag.insert(name="lonely").execute() and None, within=1).result(30)
