"""The page of an account shows how many plays it reported, and withdraws them."""

import re

import pytest

from musicsvc.clock import DAY, MINUTE
from musicsvc.server.handlers.admin import accounts
from musicsvc.store.accounts import tokens
from musicsvc.store.models import Track
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from tests.support.bounds import Bounds
from tests.support.office import Office
from tests.support.page_client import text
from tests.support.shared_server import on_shared_loop


def reporter(office: Office) -> tuple[int, list[int]]:
    """Create an account that reported 2 plays 31 days ago, 3 an hour ago and 4 now, of two tracks. Return the ids."""
    user_id = office.account("eve", api_access=True)
    value = office.token(user_id)[1]
    now = office.shared.clock.now()

    def make() -> list[int]:
        actor = tokens.identify(tokens.digest(value))
        assert actor is not None
        actor = actor._replace(reports_plays=True)
        tracks = [Track.create(name=f"Track {at}", duration=1, created_at=1).id for at in range(2)]
        for reported_at, some in ((now - 31 * DAY, 2), (now - 60 * MINUTE, 3), (now, 4)):
            heard = [ReportedPlay(tracks[at % 2], reported_at - at * DAY, "a") for at in range(some)]
            ingest.report(heard, now=reported_at, actor=actor)
        return tracks

    return user_id, office.do(make)


def left(office: Office, user_id: int) -> int:
    return int(office.do(lambda: account_plays.count(Reports(user_id), 99)))


@pytest.mark.on_both
@on_shared_loop
async def test_plays_are_withdrawn_after_a_confirmation_and_the_event_names_the_administrator(office: Office) -> None:
    user_id, tracks = reporter(office)
    page = f"/admin/accounts/{user_id}"
    assert "7 plays in the last 30 days" in await office.page(page)
    asked = text(await office.act(f"{page}/withdraw-plays", 200, since="30m", track=str(tracks[1])))
    days = "played from 26 Feb 2026 to 28 Feb 2026, reported since 1 Mar 2026, 11:30 UTC."
    assert f"reported 2 plays of track {tracks[1]}, {days}" in asked
    assert left(office, user_id) == 9
    fields = dict(re.findall(r'name="(since|track|confirmed)" value="([^"]*)"', asked))
    answer = await office.act(f"{page}/withdraw-plays", **fields)
    assert answer.headers["Location"] == page
    assert left(office, user_id) == 7
    assert "2 plays withdrawn." in await office.page(page)
    assert "5 plays in the last 30 days" in await office.page(page)
    ((kind, account, _, reason),) = office.events()
    assert (kind, account) == ("plays.withdrawn", user_id)
    assert reason is not None
    assert reason.startswith(f"2 plays of track {tracks[1]}, played from ")
    whole = text(await office.act(f"{page}/withdraw-plays", 200))
    assert "Withdraw 7 plays" in whole
    await office.act(f"{page}/withdraw-plays", confirmed="on")
    assert left(office, user_id) == 0
    found = verify.run(office.shared.store, check=True, on_progress=lambda *_: None)
    assert [each for each in found.differences if f"track {tracks[0]}," in each.row] == []


@on_shared_loop
async def test_a_withdrawal_that_cannot_be_made_says_why(office: Office, bounds: Bounds) -> None:
    user_id, _ = reporter(office)
    page = f"/admin/accounts/{user_id}"
    refused = text(await office.act(f"{page}/withdraw-plays", 422, since="soon"))
    assert "<details open>" in refused
    assert accounts.NO_TIME in refused
    assert 'value="soon"' in refused
    await office.act(f"{page}/withdraw-plays", 422, track="x")
    none = text(await office.act(f"{page}/withdraw-plays", 409, since="1s", track="9007199254740991"))
    assert "The account reported no such plays that can be withdrawn." in none
    bounds(most_withdrawn=9)
    many = text(await office.act(f"{page}/withdraw-plays", 409, confirmed="on"))
    assert f"musicsvc plays withdraw --user eve@{office.domain}" in many
    bounds(most_counted=7)
    assert "at least 7 plays in the last 30 days" in await office.page(page)
    assert left(office, user_id) == 9
    assert office.events() == []


@on_shared_loop
async def test_many_plays_are_withdrawn_in_several_steps(office: Office, bounds: Bounds) -> None:
    user_id, _ = reporter(office)
    page = f"/admin/accounts/{user_id}"
    bounds(taken_at_once=5)
    await office.act(f"{page}/withdraw-plays", confirmed="on")
    remaining = left(office, user_id)
    assert 0 < remaining < 9
    assert f"{remaining} plays remain: withdraw again." in await office.page(page)
    await office.act(f"{page}/withdraw-plays", confirmed="on")
    assert left(office, user_id) == 0
    (last, first) = sorted((str(reason) for *_, reason in office.events()), key=len)
    assert first.startswith(f"{9 - remaining} of 9 plays of 2 tracks, played from ")
    assert last.startswith(f"{remaining} play")
