"""`from` and `to` in place of a period: what is accepted, and which errors name which field."""

from typing import Any
from urllib.parse import urlencode

import pytest

from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.models import Artist
from tests.rights.world import OWNER
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

TODAY, TOMORROW = "2026-03-01", "2026-03-02"
BOTH, ALONE = "Must not be given together with ", "This field is required with "
# What is sent, and the beginnings of the messages by field.
REFUSED: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"from": "2026-02-01"}, {"to": ALONE}),
    ({"to": "2026-02-01"}, {"from": ALONE}),
    ({"from": "2026-02-02", "to": "2026-02-01"}, {"from": "Must not be after `to`."}),
    ({"from": "2026-02-02", "to": TOMORROW}, {"to": f"Must not be after today, {TODAY} in UTC."}),
    ({"from": "1925-12-16", "to": TODAY}, {"from": "The period must have at most 36,600 days."}),
    ({"from": "2026-02-30", "to": "20260301"}, {"from": "There is no such day.", "to": "Must be a date"}),
    ({"from": "2026-02-30"}, {"from": "There is no such day.", "to": ALONE}),
    ({"from": "", "to": TODAY}, {"from": "Must be a date"}),
    ({"from": "2026-02-01", "to": TODAY, "PERIOD": ""}, {"from": BOTH, "to": BOTH}),
    ({"to": TODAY, "PERIOD": ""}, {"to": BOTH}),
    ({"from": "2026-02-01", "to": TODAY, "OTHER": "all"}, {"from": BOTH, "to": BOTH, "OTHER": "Use `"}),
    ({"from": "yesterday", "to": TODAY, "PERIOD": "8-days"}, {"PERIOD": "Must be", "from": "Must be", "to": BOTH}),
    ({"PERIOD": "last-month"}, {"PERIOD": "Must be one of: "}),
    ({"PERIOD": "last-week"}, {"PERIOD": "Must be one of: "}),
    ({"PERIOD": "2026-W09"}, {"PERIOD": "Must be one of: "}),
    ({"PERIOD": "custom"}, {"PERIOD": "Must be one of: "}),
]
FIELDS = {"": "period", "/charts": "timeframe"}
NAMES = {"period": "7-days", "timeframe": "7d"}


def artist_of(shared: Shared) -> tuple[Client, int]:
    """Return a client, and an artist that it manages."""
    world = shared.world()
    manager = world.ids[OWNER]
    artist = world.do(lambda: int(Artist.create(name="Artist", manager=manager, created_at=1).id))
    return shared.client.holding(world.tokens[OWNER]), artist


def spelled(sent: dict[str, str], name: str) -> dict[str, str]:
    """Return the fields with the name of the period's field, and a name of a period where there is none.

    OTHER becomes the name of the field that other endpoints have.
    """
    (other,) = NAMES.keys() - {name}
    return {
        {"PERIOD": name, "OTHER": other}.get(each, each): value or (NAMES[name] if each == "PERIOD" else "")
        for each, value in sent.items()
    }


@on_shared_loop
async def test_dates_that_are_no_period_are_refused_by_field(shared: Shared) -> None:
    client, artist = artist_of(shared)
    for sent, expected in REFUSED:
        answers = [
            (name, await client.get(f"{INSIGHTS}/artists/{artist}{path}?{urlencode(spelled(sent, name))}"))
            for path, name in FIELDS.items()
        ]
        answers += [
            ("period", await client.post(f"{INSIGHTS}/export/{form}", spelled(sent, "period")))
            for form in ("csv", "report", "pdf")
        ]
        for name, answer in answers:
            assert answer.status == 422, sent
            assert answer.json["error"] == "validation_failed"
            wanted = spelled(expected, name)
            errors = answer.json["errors"]
            assert errors.keys() == wanted.keys(), (sent, name)
            assert all(errors[field].startswith(start) for field, start in wanted.items()), errors


@on_shared_loop
@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        ("2026-03-01", TODAY, 1),
        ("2025-12-15", "2026-02-03", 51),
        ("1925-12-17", TODAY, 36_600),
        ("0001-01-01", "0001-01-02", 2),
    ],
)
async def test_dates_are_the_period_of_every_answer(shared: Shared, first: str, last: str, days: int) -> None:
    client, artist = artist_of(shared)
    dates: dict[str, Any] = {"from": first, "to": last}
    period = {"name": "custom", "start": first, "end": last}

    figures = await client.get(f"{INSIGHTS}/artists/{artist}?{urlencode(dates)}")
    chart = await client.get(f"{INSIGHTS}/artists/{artist}/charts?{urlencode(dates)}")
    exported = await client.post(f"{INSIGHTS}/export/json", {"from": f" {first}\n", "to": last, "period": None})
    report = await client.post(f"{INSIGHTS}/export/report", {**dates, "include_charts": True})

    assert figures.json["data"]["period"] == exported.json["data"]["period"] == report.json["data"]["period"] == period
    for found in (chart.json["data"], report.json["data"]["charts"]):
        assert (found["timeframe"], len(found["points"])) == ("custom", days)
        assert (found["points"][0]["date"], found["points"][-1]["date"]) == (first, last)


@on_shared_loop
async def test_the_name_of_the_other_field_is_refused_and_the_right_one_named(shared: Shared) -> None:
    client, artist = artist_of(shared)
    use = {
        "timeframe": "Use `period` instead: 7-days, 30-days, 90-days, 1-year.",
        "period": "Use `timeframe` instead: 7d, 30d, 90d, 1y.",
    }
    for path in ("", "/listening", "/hours", "/charts"):
        other = "period" if path == "/charts" else "timeframe"
        for value in ("7d", "7-days", "", "all", "7d&timeframe=7d&period=7-days"):
            answer = await client.get(f"{INSIGHTS}/artists/{artist}{path}?{other}={value}")
            assert (answer.status, answer.json["errors"][other]) == (422, use[other]), (path, value)
    for form in ("csv", "json", "xlsx", "report", "pdf"):
        for answer in (
            await client.post(f"{INSIGHTS}/export/{form}", {"timeframe": "7d"}),
            await client.post(f"{INSIGHTS}/export/{form}?timeframe=7d", {}),
        ):
            assert (answer.status, answer.json["errors"]) == (422, {"timeframe": use["timeframe"]}), form
    assert (await client.post(f"{INSIGHTS}/export/json", {"timeframe": None})).status == 200


@on_shared_loop
async def test_a_field_of_an_export_is_no_query_parameter(shared: Shared) -> None:
    client, _ = artist_of(shared)
    for form, names in (
        ("csv", ("type", "period", "from", "to")),
        ("report", ("period", "include_charts")),
        ("pdf", ("to",)),
    ):
        query = urlencode(dict.fromkeys(names, "30-days") | {"other": "1"})
        answer = await client.post(f"{INSIGHTS}/export/{form}?{query}", {})
        assert (answer.status, answer.json["errors"]) == (
            422,
            dict.fromkeys(names, "Must be sent in the body, not in the query."),
        )
    answer = await client.post(f"{INSIGHTS}/export/json?other=1", {})
    assert answer.status == 200
