"""Covers and reports stay the same, as clients keep addresses of previews, and reports are printed again.

A digest that differs means another picture. Where that is wanted, look at it, then put the new digest here.
"""

import hashlib
import json
from typing import Any

import pytest

from musicsvc.reports import pdf
from musicsvc.reports.art import covers
from tests.reports.test_covers import EXTREMES, TEXTS
from tests.reports.test_pdf import content

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

WORDS = [TEXTS["latin"], TEXTS["arabic"], TEXTS["han"], EXTREMES["one latin word"], ("Étude No. 7", "Zoë")]
COVERS = {
    1: "2f44603fcb0f",
    2: "4861e1fe3d4a",
    3: "4725b4eb8fe9",
    4: "6e0950daafb0",
    5: "0bc9c3e726ed",
    6: "5d4faca3a90c",
    7: "8044ae64affa",
    8: "5e61fb22729e",
}
REPORTS = {1: "72b6e5c87f30", 29: "1aedb5f7d163", 400: "2b7055b81d70"}


def digest(drawn: Any) -> str:
    return hashlib.sha256(json.dumps(drawn).encode()).hexdigest()[:12]


@pytest.mark.parametrize("template", covers.templates(), ids=lambda template: template.name)
def test_a_template_draws_the_covers_that_it_always_drew(template: covers.Template) -> None:
    assert digest([covers._page(template, title, artist) for title, artist in WORDS]) == COVERS[template.id]


@pytest.mark.parametrize("days", [1, 29, 400])
def test_the_same_figures_give_the_report_that_they_always_gave(days: int) -> None:
    report = content(days, tracks=12)
    name = "The long and winding symphony of the northern lights " * 4
    tracks = [report["top_tracks"][0] | {"name": name}, *report["top_tracks"][1:]]
    long_names = ["Pneumonoultramicroscopicsilicovolcanoconiosis", "Ärzte"]
    albums = [tracks[0], tracks[1] | {"artists": long_names}, *tracks[2:3]]
    tracks[1] = albums[1]
    for at, day in enumerate(report["charts"]["points"]):
        day |= {"plays": at * 37 % 101 * 13, "listeners": at * 11 % 37, "likes": at % 3, "reposts": at % 5}
    report |= {"name": name, "top_tracks": tracks, "top_albums": albums}
    assert digest(pdf.page_data(report)) == REPORTS[days]
