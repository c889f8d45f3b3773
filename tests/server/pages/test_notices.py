"""The overview shows what others deleted, merged, or took of what an account manages with them."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions, edits, notices
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, User
from musicsvc.store.people import deletion
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Event, Filter
from tests.support.html_page import HtmlPage
from tests.support.page_client import add_account, add_session
from tests.support.serving import Answer, Client
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

Ids = Mapping[str, int]


class Duo(NamedTuple):
    """Clara, who is signed in and acts, and Ben. Tracks `air` and `aria` and the album are by an artist of each."""

    clara: Person
    ben: int
    session: str
    ids: Ids

    async def overview(self) -> HtmlPage:
        """Return the overview that Ben sees."""
        own, self.clara.browser.cookies["musicsvc"] = self.clara.browser.cookies["musicsvc"], self.session
        answer = await self.clara.browser.get("/insights")
        self.clara.browser.cookies["musicsvc"] = own
        assert answer.status == 200
        return HtmlPage(answer.body)

    @property
    def api(self) -> Client:
        return self.clara.shared.client.holding(self.clara.token()[1])

    def events(self) -> list[Event]:
        """Return the events of Ben, without that of the account's creation."""
        found = self.clara.do(lambda _: security_events.find(Filter(account_id=self.ben), limit=99))
        return [event for event in found if event.kind in notices.VERBS]


def _create(clara: int, ben: int) -> Ids:
    users.set_display_name(users.get(clara), "Clara")
    ids = {
        name: Artist.create(name=name, manager=by, created_at=1).id for name, by in (("Wieck", clara), ("Hall", ben))
    }
    ids["album"] = Album.create(name="Songs", created_at=1).id
    AlbumArtist.insert_many([(ids["album"], ids["Hall"], 0), (ids["album"], ids["Wieck"], 1)]).execute()
    for name in ("Air", "Aria"):
        ids[name] = Track.create(name=name, duration=60_000, created_at=1).id
        TrackArtist.insert_many([(ids[name], ids["Wieck"], 0), (ids[name], ids["Hall"], 1)]).execute()
    return ids


@pytest.fixture
def duo(developer: Person) -> Duo:
    ben = add_account(developer.shared, f"ben-of-{developer.email}", display_name="Ben")
    ids = developer.do(lambda _: _create(developer.id, ben))
    return Duo(developer, ben, add_session(developer.shared, ben), ids)


Act = Callable[[Duo], Awaitable[Answer]]


def page(path: str, **form: str) -> Act:
    """Return a function that sends a form of Clara, in which `{Air}` and the like stand for ids."""

    async def send(duo: Duo) -> Answer:
        typed = {name: value.format_map(duo.ids) for name, value in form.items()}
        if path.endswith("/edit"):
            filled = path.format_map(duo.ids)
            typed = HtmlPage((await duo.clara.browser.get(filled)).body).forms[filled] | typed
        return await duo.clara.browser.post(path.format_map(duo.ids), typed)

    return send


WAYS: Mapping[str, tuple[Act, str, str]] = {
    "DELETE track": (lambda duo: duo.api.delete(f"tracks/{duo.ids['Air']}"), "deleted", "deleted track {Air} (Air)"),
    "DELETE album": (
        lambda duo: duo.api.delete(f"albums/{duo.ids['album']}"),
        "deleted",
        "deleted album {album} (Songs)",
    ),
    "PATCH track": (
        lambda duo: duo.api("PATCH", f"tracks/{duo.ids['Air']}", {"artists": [duo.ids["Wieck"]]}),
        "uncredited",
        "removed Hall from track {Air} (Air)",
    ),
    "PATCH album": (
        lambda duo: duo.api("PATCH", f"albums/{duo.ids['album']}", {"artist_id": duo.ids["Wieck"]}),
        "uncredited",
        "removed Hall from album {album} (Songs)",
    ),
    "page to delete": (page("/insights/track/{Air}/delete"), "deleted", "deleted track {Air} (Air)"),
    "page to edit": (
        page("/insights/track/{Air}/edit", **{"artists.1": ""}),
        "uncredited",
        "removed Hall from track {Air} (Air)",
    ),
    "page to merge": (
        page("/insights/track/merge", merge="{Air}", into="{Aria}"),
        "merged",
        "merged track {Air} (Air) into track {Aria} (Aria)",
    ),
}


@pytest.mark.parametrize("way", WAYS)
@on_shared_loop
async def test_the_other_manager_sees_who_did_what_and_when(duo: Duo, way: str) -> None:
    act, kind, words = WAYS[way]
    assert "Changed by others" not in (await duo.overview()).text
    answer = await act(duo)
    assert answer.status in {200, 303}, answer.body
    (event,) = duo.events()
    part = "page" if way.startswith("page") else "api"
    assert (event.kind.partition(".")[2], event.actor, event.actor_id) == (kind, part, duo.clara.id)
    shown = await duo.overview()
    assert f"Clara (account {duo.clara.id}) {words.format_map(duo.ids)} 1 Mar 2026, 12:00 UTC" in shown.text
    assert "@" not in shown.text.replace(f"ben-of-{duo.clara.email}", "")
    own = HtmlPage((await duo.clara.browser.get("/insights")).body)
    assert "Changed by others" not in own.text


@on_shared_loop
async def test_a_change_that_takes_nothing_of_others_is_no_event(duo: Duo) -> None:
    for changes in ({"name": "Ayre"}, {"artists": [duo.ids["Hall"], duo.ids["Wieck"]]}):
        assert (await duo.api("PATCH", f"tracks/{duo.ids['Air']}", changes)).status == 200
    own = (await duo.api.post("tracks", {"name": "Own", "duration": 1, "artists": [duo.ids["Wieck"]]})).json["track"]
    assert (await duo.api.delete(f"tracks/{own['id']}")).status == 200
    assert duo.events() == []


@on_shared_loop
async def test_the_newest_of_the_last_30_days_are_shown(duo: Duo) -> None:
    now = duo.clara.shared.clock.now()

    def lose(name: str, at: int) -> None:
        by = duo.clara.id
        security_events.add("track.deleted", account_id=duo.ben, reason=name, now=at, actor="api", actor_id=by)

    def fill(_: User) -> None:
        for number in range(notices.MOST + 1):
            lose(f"track {number} (Song)", now - number)
        lose("track 999 (Old)", now - notices.SHOWN_FOR - 1)

    duo.clara.do(fill)
    shown = (await duo.overview()).text
    assert re.findall(r"deleted track (\d+) ", shown) == [str(number) for number in range(notices.MOST)]


@on_shared_loop
async def test_the_operator_and_accounts_that_are_gone_are_named_as_such(duo: Duo) -> None:
    now = duo.clara.shared.clock.now()

    def act(user: User) -> None:
        edits.edit_track(tracks.get(duo.ids["Aria"]), {"artists": [duo.ids["Wieck"]]}, now=now)
        deletions.delete(tracks.get(duo.ids["Air"]), now=now, account=user.id, actor="api")
        Artist.update(manager=duo.ben).where(Artist.id == duo.ids["Wieck"]).execute()
        deletion.delete(user.id, now=now)

    duo.clara.do(act)
    shown = (await duo.overview()).text
    assert "The operator removed Hall from track {Aria} (Aria)".format_map(duo.ids) in shown
    assert "A deleted account deleted track {Air} (Air)".format_map(duo.ids) in shown


@on_shared_loop
async def test_an_administrator_merges_for_all_managers(duo: Duo) -> None:
    boss = add_account(duo.clara.shared, f"boss-of-{duo.clara.email}", admin=True, display_name="Boss", api_access=True)
    duo.clara.browser.cookies["musicsvc"] = add_session(duo.clara.shared, boss)
    answer = await page("/insights/artist/merge", merge="{Hall}", into="{Wieck}")(duo)
    assert answer.status == 303
    words = f"Boss (account {boss}) merged artist {{Hall}} (Hall) into artist {{Wieck}} (Wieck)".format_map(duo.ids)
    assert words in (await duo.overview()).text  # who manages no artist any more
    merges = [event for event in duo.clara.events() if event.kind == "artist.merged"]
    assert [(event.actor, event.actor_id) for event in merges] == [("admin", boss)]
