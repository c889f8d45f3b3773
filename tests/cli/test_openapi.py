"""`musicsvc openapi`: the document without a server."""

import json

import pytest

from musicsvc.server.openapi import document as openapi
from tests.cli.conftest import Run


def test_the_document_is_printed_without_a_database(bare: Run) -> None:
    assert json.loads(bare("openapi").stdout) == json.loads(json.dumps(openapi.document()))


def test_its_root_is_the_public_address_where_that_is_set(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://music.example.test")
    assert json.loads(bare("openapi").stdout)["servers"] == [{"url": "https://music.example.test"}]
    monkeypatch.setenv("MUSICSVC_SERVER__BASE_PATH", "/music")
    assert json.loads(bare("openapi").stdout)["servers"] == [{"url": "https://music.example.test/music"}]
