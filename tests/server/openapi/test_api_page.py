"""docs/api.md lists the fields of each tier and the codes of errors as the service has them."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from musicsvc.server.schemas import catalog
from musicsvc.server.schemas.errors import CODES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text("utf-8")


def cells(first: str) -> list[str]:
    """Return the other cells of the table row with this first cell."""
    (row,) = re.findall(rf"^\| {first} \|(.*)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in row.split(" | ")]


def names(cell: str) -> set[str]:
    return {name for span in re.findall(r"`([^`]+)`", cell) for name in span.split(", ")} - {"with"}


@pytest.mark.parametrize(
    ("resource", "public", "full"),
    [
        ("artist", catalog.ArtistPublic, catalog.Artist),
        ("album", catalog.AlbumPublic, catalog.Album),
        ("track", catalog.TrackPublic, catalog.Track),
    ],
)
def test_the_tiers_have_the_listed_fields(resource: str, public: type[BaseModel], full: type[BaseModel]) -> None:
    public_cell, full_cell = cells(resource)

    assert names(public_cell) == public.model_fields.keys()
    assert names(full_cell) == full.model_fields.keys()


def test_a_genre_has_the_listed_fields() -> None:
    assert names(cells("genre")[0]) == catalog.Genre.model_fields.keys()


def test_every_code_of_an_error_is_listed() -> None:
    section = PAGE.partition("## Errors")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\| (\d.*)\|$", section, re.MULTILINE)]
    listed = {
        int(status): code.strip("` ")
        for statuses, codes, *_ in rows
        for status, code in zip(statuses.split(", "), codes.split(", "), strict=True)
        if code
    }

    assert listed == CODES
