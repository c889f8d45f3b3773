"""The upgrade that lets a database with accounts and tokens keep answers."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from musicsvc.store import opening
from musicsvc.store.accounts import kept_answers, users
from musicsvc.store.accounts.kept_answers import Keyed
from musicsvc.store.models import KeptAnswer, User
from musicsvc.store.people import deletion
from musicsvc.store.schema import history, schema
from tests.conftest import NOW


@pytest.mark.on_both
def test_accounts_of_before_keep_answers(new_database: Callable[..., str], tmp_path: Path) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available():
        if name < "0012":
            shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with opening.open_unchecked(url) as store:
        names = ("ann@label.test", "ben@label.test", "cleo@label.test")
        ids = store.write(lambda: [users.create(each, api_access=True, now=NOW).id for each in names]).result()

    assert "0012_kept_answers" in schema.upgrade(url)

    with opening.connect(url) as store:
        assert store.read(lambda: [row.id for row in User.select().order_by(User.id)]).result() == ids
        for number, account in enumerate(ids):
            asked = Keyed(account, "k", "/api/v1/albums", bytes([number]) * 32)
            store.write(partial(kept_answers.once, asked, dict, lambda _: b"{}", now=NOW)).result()
        store.write(lambda: deletion.delete(ids[1], now=NOW)).result()
        kept = store.read(lambda: [row.user for row in KeptAnswer.select().order_by(KeptAnswer.id)]).result()
        assert kept == [ids[0], ids[2]]
        assert store.read(schema.problems).result() == []
