"""docs/endpoints.md agrees with the table of endpoints."""

from __future__ import annotations

from pathlib import Path

from musicsvc.server.openapi import listing


def test_the_list_of_endpoints_is_that_of_the_table() -> None:
    written = (Path(__file__).resolve().parents[3] / "docs" / "endpoints.md").read_text("utf-8")
    hint = "run: python -m musicsvc.server.openapi.listing > docs/endpoints.md"
    assert written == listing.markdown(), hint
