"""Archives of listening histories: the histories in them are read, faulty members are named."""

import io
import zipfile
from pathlib import Path

import orjson
import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.files.records import Limits
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.support.history_files import LISTEN, read, write
from tests.support.import_files import import_file
from tests.support.refused_rows import reasons


def packed(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return target.getvalue()


def test_of_an_archive_the_histories_are_read_and_the_rest_is_not(store: Store, tmp_path: Path) -> None:
    pages = {
        "listens__2024__5.jsonl": orjson.dumps(LISTEN) + b"\n" + b"7\n",
        "listens__2024__6.jsonl": orjson.dumps(LISTEN | {"listened_at": 1_717_236_000}),
        "user.json": b'{"username": "somebody"}',
        "ReadMe.pdf": b"%PDF",
    }
    file = write(tmp_path / "export.zip", packed(**pages))

    def run() -> ImportSummary:
        return import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True)))

    summary = run()
    assert (summary.rows, summary.counts["plays"].new) == (3, 2)
    assert reasons(summary) == [(2, "listens/2024/5.jsonl: the line is not a JSON object")]
    assert run().counts["plays"].repeated == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(**{"user.json": b"{}"}), "holds no listening history"),
        (packed(), "holds no listening history"),
        (packed(**{"a.jsonl": orjson.dumps(LISTEN) * 1000})[:-30], "is damaged"),
        (b"PK\x03\x04 and nothing more", "is damaged"),
    ],
)
def test_an_archive_without_a_history_is_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(Failure, match=message):
        read(write(tmp_path / "a.zip", content))


def test_a_member_whose_data_are_broken_is_named(tmp_path: Path) -> None:
    whole = bytearray(packed(**{"a.jsonl": orjson.dumps(LISTEN) * 1000}))
    whole[60] ^= 0xFF
    with pytest.raises(Failure, match=r"a\.jsonl cannot be unpacked"):
        read(write(tmp_path / "a.zip", bytes(whole)))


def test_a_member_too_large_to_be_unpacked_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.zip", packed(**{"a.jsonl": orjson.dumps(LISTEN)}))
    with (
        pytest.raises(Failure, match=r"a\.jsonl is larger than 10 bytes"),
        histories.open_file(file, limits=Limits(history=10)) as reader,
    ):
        list(reader)
