"""The pages of administration begin with who called most, and the first one with who is near a limit."""

import re
from typing import NamedTuple

import pytest
import pytest_asyncio

from musicsvc.clock import HOUR, MINUTE
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.security.security_events import Administrator
from tests.cli.test_activity import CALL
from tests.support.office import Office
from tests.support.page_outline import outline
from tests.support.shared_server import on_shared_loop

pytestmark = on_shared_loop
HEAD = "Calls | Refusals | Objects | First | Last | Share of the limit"


class World(NamedTuple):
    """The ids of two tokens, their accounts, and two addresses that nobody else has."""

    office: Office
    crawler: int
    laptop: int
    eve: str
    ben: str
    addresses: tuple[str, str]

    async def rows(self, path: str) -> list[str]:
        """Return the rows of the first table of callers."""
        answer = await self.office.browser.get(path)
        assert answer.status == 200
        lines = outline(answer.body)
        first = next(place for place, line in enumerate(lines) if line.endswith(HEAD))
        return [line for line in lines[first + 1 :] if " | " in line]

    async def row(self, path: str, text: str) -> str:
        (found,) = [row for row in await self.rows(path) if text in row.split(" | ")[0]]
        return found


@pytest_asyncio.fixture(loop_scope="session")
async def world(office: Office) -> World:
    now, number = office.shared.clock.now() // HOUR * HOUR, office.admin
    people = {name: office.account(name, api_access=True) for name in ("eve", "ben")}
    crawler, _ = office.token(people["eve"], f"crawler {number}")
    laptop, _ = office.token(people["ben"], f"laptop {number}")
    addresses = f"203.0.{number % 250}.9", f"198.51.{number % 250}.7"

    def call(token: int, at: int, status: int, resource: str | None) -> Entry:
        account, address = (people["eve"], addresses[0]) if token == crawler else (people["ben"], addresses[1])
        route = "/api/v1/tracks/{id}" if resource else f"/api/v1/only-{number}"
        named = CALL._replace(token_id=token, account_id=account, address=address, route=route, resource=resource)
        return named._replace(at=at, status=status, private=False, request_id=f"r-{number}")

    rows = [
        call(crawler, now + n * MINUTE // 100, (200, 200, 404, 429)[n % 4], f"tracks/{n % 90}") for n in range(1_200)
    ]
    rows += [call(laptop, now + n * MINUTE, 200, None) for n in range(19)]
    with activity_log.build(office.shared.store.url) as log:
        log.prepare()
        log.write(lambda: calls.add(rows)).result()
    mail = {name: f"[/admin/accounts/{key}] {name}@{office.domain}" for name, key in people.items()}
    return World(office, crawler, laptop, mail["eve"], mail["ben"], addresses)


@pytest.mark.on_both
async def test_the_sums_of_a_window_lead_to_its_calls(world: World) -> None:
    number = world.office.admin
    row = await world.row("/admin/activity", f"crawler {number}")
    link = re.search(r"\[(/admin/activity[^]]*)\] 1,200", row)
    assert link is not None
    assert row.replace(link[0], "1,200") == (
        f"[/admin/tokens/{world.crawler}] crawler {number} of {world.eve} | 1,200 | 600 300 × 404, 300 × 429 | 90"
        " | 1 Mar 2026, 12:00 UTC | 1 Mar 2026, 12:11 UTC | 5 % [bad] 300 calls beyond a limit"
    )
    listed = outline((await world.office.browser.get(link[1].replace("&amp;", "&"))).body)
    assert not [line for line in listed if line.endswith(HEAD)]
    found = [line for line in listed if line.startswith("1 Mar 2026")]
    assert len(found) == 50
    assert {f"[/admin/tokens/{world.crawler}] {world.crawler}" in line for line in found} == {True}

    laptop = await world.row("/admin/activity", f"laptop {number}")
    assert laptop.endswith(" | 0 | 0 | 1 Mar 2026, 12:00 UTC | 1 Mar 2026, 12:18 UTC | 0 %")
    rows = await world.rows("/admin/activity")
    assert rows.index(row) < rows.index(laptop)


@pytest.mark.parametrize(("by", "text"), [("address", "198.51."), ("route", "/api/v1/only-"), ("status", "200")])
async def test_calls_are_summed_by_address_endpoint_and_status(world: World, by: str, text: str) -> None:
    mine = {"address": world.addresses[1], "route": f"/api/v1/only-{world.office.admin}", "status": "200"}[by]
    assert text in mine
    row = await world.row(f"/admin/activity?by={by}", mine)
    if by != "status":  # other tests share the log
        assert re.sub(r"\[[^]]*\] ", "", row).split(" | ")[:3] == [mine, "19", "0"]


async def test_a_window_is_in_whole_hours(world: World) -> None:
    lines = outline(
        (await world.office.browser.get("/admin/activity?since=2026-03-01T12:30&until=2026-03-01T12:31")).body
    )
    assert any(line.startswith("1 Mar 2026, 12:00 UTC to 1 Mar 2026, 13:00 UTC, in whole hours") for line in lines)
    wrong = await world.office.browser.get("/admin/activity?until=soon")
    assert wrong.status == 422
    assert "is not a time" in wrong.body.decode()


async def test_the_first_page_begins_with_who_is_near_a_limit(world: World) -> None:
    number = world.office.admin
    rows = await world.rows("/admin")
    assert any(f"crawler {number} of {world.eve}" in row for row in rows)
    assert not any(f"laptop {number}" in row for row in rows)
    now = world.office.shared.clock.now()
    actor = Administrator(number)
    world.office.do(lambda: tokens.revoke(world.crawler, "a scraper", now=now, actor=actor))
    assert "[bad] revoked" in await world.row("/admin", f"crawler {number}")
    decided = await world.office.page("/admin?show=decided")
    assert "Near a limit" not in decided


async def test_tokens_are_listed_with_their_calls_of_a_day(world: World) -> None:
    answer = await world.office.browser.get(f"/admin/tokens?q={world.office.domain}")
    found = {
        line.split(" | ")[0].partition("] ")[2]: line.split(" | ")[-3:]
        for line in outline(answer.body)
        if " | " in line
    }
    number = world.office.admin
    assert found[f"crawler {number}"] == ["1,200 [bad] near a limit", "600", "90"]
    assert found[f"laptop {number}"] == ["19", "0", "0"]


@pytest.mark.parametrize("until", ["2026-02-28T10:00:00Z", "2026-02-27T10:00:00Z"])
async def test_a_window_that_ends_before_it_begins_is_refused(world: World, until: str) -> None:
    answer = await world.office.browser.get(f"/admin/activity?since=2026-02-28T10:00:00Z&until={until}")
    assert (answer.status, "Must be after the beginning." in answer.body.decode()) == (422, True)
    assert HEAD not in outline(answer.body)
