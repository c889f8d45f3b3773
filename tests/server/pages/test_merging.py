"""Twins are proposed on a page, compared on another, and merged only by the button there."""

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from musicsvc.clock import SECOND
from musicsvc.store.catalog import names
from musicsvc.store.dashboards import report_links
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    SecurityEvent,
    Track,
    TrackArtist,
    User,
)
from musicsvc.store.plays.periods import window
from musicsvc.store.plays.subjects import TRACK, Subject
from tests.conftest import NOW
from tests.support.html_page import HtmlPage
from tests.support.page_client import add_account
from tests.support.serving import Answer
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

pytestmark = pytest.mark.usefixtures("developer")  # merges need API access


def track(manager: int, name: str, **values: Any) -> int:
    artist = Artist.get_or_none(Artist.manager == manager) or Artist.create(name="Clara", manager=manager, created_at=1)
    row = Track.create(name=name, duration=60_000, created_at=1, **values).id
    TrackArtist.create(track=row, artist=artist, position=0)
    return int(row)


async def play(person: Person, track_id: int, *heard: tuple[str, int]) -> None:
    """Report plays: the listener, and the half minute."""
    person.do(lambda user: User.update(reports_plays=True, api_access=True).where(User.id == user.id).execute())
    plays = [{"track_id": track_id, "listener": name, "played_at": NOW // SECOND - 900 + 30 * at} for name, at in heard]
    answer = await person.shared.client.holding(person.token()[1]).post("plays", {"plays": plays})
    assert answer.json["accepted"] == len(heard), answer.json


def share(subjects: Sequence[Subject], user_id: int) -> report_links.LinkRow:
    return report_links.create(subjects, window("7-days", NOW), user_id=user_id, now=NOW)


async def get(person: Person, path: str) -> HtmlPage:
    answer = await person.browser.get(path)
    assert answer.status == 200, answer.body
    return HtmlPage(answer.body)


async def merge(person: Person, noun: str, source: int, target: int) -> Answer:
    return await person.browser.post(f"/insights/{noun}/merge", {"merge": source, "into": target})


@on_shared_loop
async def test_twins_are_listed_with_the_reason_and_lead_to_a_comparison(person: Person) -> None:
    def load(user: User) -> list[int]:
        rows = [track(user.id, name, isrc=code) for name, code in (("Air", "DEA624101234"), ("Aria", None))]
        rows += [track(user.id, "ÁIR!"), track(user.id, "Gigue", isrc="DEA624101234"), track(user.id, "aria")]
        for name in ("Suite", "Partita"):
            album = Album.create(name=name, upc="036000291452", created_at=1).id
            AlbumArtist.create(album=album, artist=Artist.get(Artist.manager == user.id), position=0)
        Artist.create(name="clara", manager=user.id, created_at=1)
        return rows

    air, aria, twin, gigue, other = person.do(load)
    page = await get(person, "/insights/duplicates?kind=track")
    for pair in (
        f"ÁIR! ({twin}) and Air ({air}) Clara · same name",
        f"Gigue ({gigue}) and Air ({air}) Clara · same ISRC",
        f"aria ({other}) and Aria ({aria}) Clara · same name",
    ):
        assert page.text.count(pair) == 1
    assert "3 pairs" in page.text
    assert f"/insights/track/merge?merge={twin}&into={air}" in page.links()
    assert "Clara · same UPC" in (await get(person, "/insights/duplicates?kind=album")).text
    assert "1 pair " in (await get(person, "/insights/duplicates")).text
    assert "3 pairs" in (await get(person, "/insights/duplicates?kind=track&page=9")).text

    def copy(user: User) -> list[int]:
        return [Artist.create(name="clara", manager=user.id, created_at=1).id for _ in range(20)]

    person.do(copy)
    first, last = await get(person, "/insights/duplicates"), await get(person, "/insights/duplicates?page=2")
    assert ("/insights/duplicates?kind=artist&page=2" in first.links(), last.text.count("same name")) == (True, 1)
    assert "21 pairs" in last.text


@pytest.mark.slow
@on_shared_loop
async def test_a_comparison_says_what_moves_and_what_coincides_and_changes_nothing(person: Person) -> None:
    source = person.do(lambda user: track(user.id, "Air", isrc="DEA624101234", bpm=60))
    target = person.do(lambda user: track(user.id, "Aria", bpm=70))
    await play(person, source, ("ann", 0), ("ann", 1), ("ben", 2), ("cy", 3))
    await play(person, target, ("ann", 1), ("ben", 2), ("dee", 4))
    both = [Subject(TRACK, source), Subject(TRACK, target)]
    person.do(lambda user: [share(shown, user.id) for shown in (both, both[:1])])
    path = f"/insights/track/merge?merge=Air&into={quote(names.with_id('Aria', target))}"
    page = await get(person, path)
    rows = {label: cells for label, *cells in page.table("Field")}
    assert (rows["Beats per minute"], rows["ISRC"]) == (["60", "70"], ["DEA624101234", "DEA624101234"])
    assert "Aria gets 2 plays. 2 plays coincide with plays by the same listener" in page.text
    assert f"/insights/track/merge?merge={target}&into={source}" in page.links()
    other = person.do(lambda user: track(user.id, "Gigue"))
    assert "No plays coincide." in (await get(person, f"/insights/track/merge?merge={other}&into={target}")).text
    codes = person.do(lambda _: [Track.get_by_id(row).isrc for row in (source, target)])
    assert codes == ["DEA624101234", None]

    answer = await person.browser.post("/insights/track/merge", page.forms["/insights/track/merge"])
    assert (answer.status, answer.headers["Location"]) == (303, "/insights/duplicates?kind=track")
    assert "Air is merged into Aria." in (await get(person, answer.headers["Location"])).text
    assert (await person.browser.get(f"/insights/track/{source}")).status == 404
    assert (await get(person, f"/insights/track/{target}")).figures["plays.total"] == "5"
    assert (await merge(person, "track", source, target)).status == 404  # in another tab
    links = person.do(lambda user: report_links.list(user.id, now=NOW))
    assert [row.names for row in links] == [("Aria",), ("Aria",)]  # each shows the other, once
    shown = person.do(lambda _: [report_links.open(row.id, row.created_at, now=NOW) for row in links])
    assert [(each.subjects, each.compared) for each in shown] == [((both[1],), False), ((both[1],), True)]


@on_shared_loop
async def test_names_that_mean_no_row_are_shown_again_and_rows_of_others_are_forbidden(person: Person) -> None:
    own = person.do(lambda user: track(user.id, "Air"))
    label = add_account(person.shared, "other@label.test")
    theirs, more = person.do(lambda _: [track(label, name) for name in ("Theirs", "Theirs, too")])
    for query, message in (
        (f"merge=Nothing&into={own}", "There is no track named Nothing."),
        (f"merge={own}&into={own}", "cannot be merged into itself."),
        (f"merge=99999&into={own}", "There is no such track."),
    ):
        answer = await person.browser.get(f"/insights/track/merge?{query}")
        page = HtmlPage(answer.body)
        assert (answer.status, page.text.count(message)) == (422, 1)
        assert page.forms["/insights/track/merge"]["into"] == str(own)
    assert (await person.browser.get(f"/insights/track/merge?merge={own}&into={theirs}")).status == 403
    preview = f"/insights/track/merge?merge={own}&into={theirs}"
    sent = {"merge": own, "into": theirs}
    refused = await person.browser.post("/insights/track/merge", sent, Referer=f"{person.browser.root}{preview}")
    assert (refused.status, preview in HtmlPage(refused.body).links()) == (403, True)

    person.do(lambda user: User.update(admin=True).where(User.id == user.id).execute())
    assert (await merge(person, "track", more, theirs)).status == 303
    event = person.do(lambda _: SecurityEvent.get(SecurityEvent.kind == "track.merged", SecurityEvent.actor == "admin"))
    assert (event.actor_id, event.account_id) == (person.id, label)


@on_shared_loop
async def test_a_merge_a_split_and_a_deletion_that_are_sent_twice_are_told_as_done(person: Person) -> None:
    into = person.do(lambda user: track(user.id, "Aria"))
    rows = [person.do(lambda user: track(user.id, "Air")) for _ in range(2)]
    artist = person.do(lambda user: Artist.create(name="Ann and Ben", manager=user.id, created_at=1).id)
    for path, fields, notice, status in (
        ("/insights/track/merge", {"merge": rows[0], "into": into}, "Air is merged into Aria.", 404),
        (f"/insights/track/{rows[1]}/delete", {}, "Air is deleted.", 404),
        (
            "/insights/artist/split",
            {"artist": artist, "into": "Ann\u202e\u2067\nBen"},
            "Ann and Ben is split into Ann\u202e, Ben.",
            422,
        ),
    ):
        sent = fields | {"form_token": await person.browser.form_token()}
        answers = await asyncio.gather(*(person.browser.post(path, sent) for _ in range(2)))
        assert [each.status for each in answers] == [303, 303]
        shown = (await person.browser.get(answers[1].headers["Location"])).body
        assert notice in HtmlPage(shown).text
        assert "\u2068Ann\u202e\u2069" in shown.decode() or "Ann" not in notice  # no name turns the sentence round
        assert (await person.browser.post(path, fields)).status == status  # of another page
    assert person.do(lambda user: Artist.select().where(Artist.manager == user.id).count()) == 3
