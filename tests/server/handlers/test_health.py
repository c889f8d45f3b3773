"""Health checks."""

import logging
import os
import shutil
from pathlib import Path

import apsw
import pytest

from musicsvc import permissions
from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import describe
from musicsvc.store.schema import schema
from tests.support import databases
from tests.support.serving import Answer, Client

PAGE = 4096
UNAVAILABLE = "The database is not available."


async def ready(client: Client) -> Answer:
    """Return the response of /readyz; /healthz always answers 200."""
    alive = await client.get("/healthz")
    assert (alive.status, alive.json) == (200, {"status": "ok"})
    return await client.get("/readyz")


async def test_a_service_that_can_work_says_so_without_a_token(anonymous: Client) -> None:
    answer = await ready(anonymous)
    assert (answer.status, answer.json) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"INSERT INTO {schema.HISTORY} (name, oldest_program) VALUES ('9999_later', '9.9.0')", "needs musicsvc 9.9.0"),
        (
            f"UPDATE {schema.HISTORY} SET name = '0001_catalog' WHERE name = '0001_baseline'",
            "was written before version 0.1.0",
        ),
        (f"DELETE FROM {schema.HISTORY}", "Run: musicsvc init"),
    ],
)
async def test_another_schema_is_503_and_the_log_names_the_remedy(
    anonymous: Client, store: Store, statement: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    store.write(lambda: bool(current().execute_sql(statement))).result()
    answer = await ready(anonymous)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json == {"status": "unavailable"}
    assert words in caplog.text


@pytest.mark.only_on("sqlite")
async def test_a_database_file_that_is_gone_is_503_until_it_is_back(
    anonymous: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    file = Path(store.url.removeprefix("sqlite:///"))
    aside = file.with_suffix(".aside")
    assert (await ready(anonymous)).status == 200
    os.rename(file, aside)  # noqa: PTH104 - one for all, which async functions may call
    assert (await ready(anonymous)).status == 503
    shutil.copy(aside, file)
    answer = await ready(anonymous)
    assert (answer.status, answer.json) == (503, {"status": "unavailable"})
    os.replace(aside, file)  # noqa: PTH105 - atomic
    with caplog.at_level(logging.INFO, "musicsvc"):
        assert [(await ready(anonymous)).status for _ in range(2)] == [200] * 2
    told = f"not ready: {file} was moved, replaced or deleted. Put it back and restart."
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "ready" in line] == [told, "ready again"]  # jobs may have met it as well


@pytest.mark.only_on("sqlite")
async def test_a_damaged_database_is_503_and_the_log_names_the_remedy(
    anonymous: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.url.removeprefix("sqlite:///")
    apsw.Connection(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with Path(path).open("r+b") as file:  # noqa: ASYNC230 - a few pages
        size = file.seek(0, os.SEEK_END)
        file.seek(PAGE)
        file.write(b"\xff" * (size - PAGE))
    answer = await ready(anonymous)
    assert (answer.status, answer.json) == (503, {"status": "unavailable"})
    assert "not ready: The database is damaged. Run: musicsvc db check" in caplog.messages


@pytest.mark.only_on("sqlite")
async def test_a_database_that_may_not_be_read_any_more_is_not_called_moved(
    anonymous: Client, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await ready(anonymous)).status == 200
    monkeypatch.setattr(files, "identity", lambda _: None)  # the tests may be root, which may read everything
    monkeypatch.setattr(permissions, "denial", lambda _: "The folder belongs to root.")
    assert (await ready(anonymous)).status == 503
    file = store.url.removeprefix("sqlite:///")
    assert f"not ready: {file} cannot be opened. The folder belongs to root." in caplog.messages


@pytest.mark.only_on("postgres")
async def test_a_database_that_is_gone_is_503_everywhere(
    client: Client, store: Store, template: databases.Template, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await ready(client)).status == 200
    template.remove(store.url)
    assert (await ready(client)).status == 503
    for answer in (await client.get("albums"), await client.post("artists", {"name": "Amy Beach"})):
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert answer.json["message"] == UNAVAILABLE
    assert f"{describe(store.url)} does not accept connections: " in caplog.text


@pytest.mark.parametrize("host", ["é" * 70, "a" * 70, "192.0.2.7", "1.2.3.4.5.6"])
def test_an_address_of_no_machine_or_of_another_is_told_in_words(host: str) -> None:
    with pytest.raises(Failure, match=host):
        serving.listen(host, 0)
