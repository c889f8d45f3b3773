"""A share link shows one report to anybody, and nothing else."""

import re
import string
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio

from musicsvc.clock import DAY
from musicsvc.server.routes.route import Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.models import Artist
from tests.server.handlers.test_art import size_of
from tests.support.databases import Template
from tests.support.html_page import HtmlPage
from tests.support.listening_world import Catalog, catalog
from tests.support.page_client import PageClient, add_session, page_client
from tests.support.shared_server import Shared, on_shared_loop, shared_server
from tests.support.waiting import until

pytestmark = on_shared_loop
ALPHABET = string.ascii_letters + string.digits + "-_"
LINK = re.compile(r"/reports/[A-Za-z0-9_.-]+")


class World(NamedTuple):
    """A server, its owner's browser and one that is not signed in."""

    shared: Shared
    owner: PageClient
    anybody: PageClient
    made: Catalog

    async def share(self, path: str, days: str = "30") -> str:
        """Create a link, and return its path."""
        answer = await self.owner.post(path, {"days": days})
        assert answer.status == 201, answer.body
        return str(LINK.findall(answer.body.decode())[0])

    async def status(self, link: str) -> int:
        return (await self.anybody.get(link)).status


@pytest_asyncio.fixture(loop_scope="module")
async def world(template: Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with (
        shared_server(template, tmp_path_factory.mktemp("reports")) as shared,
        page_client(shared.client.root) as owner,
        page_client(shared.client.root) as anybody,
    ):
        made = shared.store.write(lambda: _fill(shared.clock.now())).result()
        owner.cookies["musicsvc"] = add_session(shared, made.manager.user_id)
        yield World(shared, owner, anybody, made)


def _fill(now: int) -> Catalog:
    made = catalog(now)
    made.add_plays((made.tracks[0], now - day * DAY, f"l{each}") for day in range(40) for each in range(day % 7 + 1))
    made.add_plays((made.tracks[1], now - day * DAY, f"m{each}") for day in range(40) for each in range(day % 3))
    return made


async def test_a_link_shows_the_report_signed_out_with_fixed_days_and_live_figures(world: World) -> None:
    artist = world.made.artists[0]
    link = await world.share(f"/insights/artist/{artist}/share?period=7-days")
    owner = HtmlPage((await world.owner.get(f"/insights/artist/{artist}?period=7-days")).body)

    answer = await world.anybody.get(link)
    page = HtmlPage(answer.body)
    assert answer.headers["Cache-Control"] == "no-store"
    assert {"name": "robots", "content": "noindex"} in [found for tag, found in page.attributes if tag == "meta"]
    assert page.figures == {name: owner.figures[name] for name in page.figures}
    assert page.table("Day") == owner.table("Day")
    assert page.growth == owner.growth
    assert page.table("Track") == owner.table("Track")
    assert not [target for target in page.links() if target.startswith("/insights")]
    assert world.anybody.cookies == {}

    world.shared.clock.advance(DAY)
    new = [(world.made.tracks[0], world.shared.clock.now() - ago * DAY, "new") for ago in (0, 1)]
    world.shared.store.write(lambda: world.made.add_plays(new)).result()
    later = HtmlPage((await world.anybody.get(link)).body)
    assert [row[0].removesuffix(", not over") for row in page.table("Day")] == [row[0] for row in later.table("Day")]
    assert int(later.figures["plays.period"]) == int(page.figures["plays.period"]) + 1


async def test_a_shared_page_names_its_owner_and_the_artists(world: World) -> None:
    store, made = world.shared.store, world.made
    store.write(lambda: users.set_display_name(users.get(made.manager.user_id), "Ada's <Records>")).result()
    for path, line in (
        (f"artist/{made.artists[0]}", "Artist, "),
        (f"album/{made.albums[0]}", "Album by Artist 0, "),
        (f"track/{made.tracks[1]}", "Track by Artist 0, Artist 1, "),
    ):
        page = HtmlPage((await world.anybody.get(await world.share(f"/insights/{path}/share"))).body)
        assert line in page.text
        isolated = page.attributes.count(("bdi", {}))  # so that what follows stays behind a name in Arabic
        assert isolated == (1 if path.startswith("artist") else 2)
        assert "Shared by Ada's <Records>" in page.text
        assert "your account" not in page.text
        assert ("of Ada's <Records> Catalog" in page.text) == path.startswith("artist")  # below the followers
        own = HtmlPage((await world.owner.get(f"/insights/{path}")).body)
        assert line in own.text
        assert "Shared by" not in own.text


async def test_only_its_owner_is_told_to_choose_another_period(world: World) -> None:
    path = f"/insights/track/{world.made.tracks[0]}"
    days = "from=2020-01-01&to=2020-01-31"
    shared = HtmlPage((await world.anybody.get(await world.share(f"{path}/share?{days}"))).body)
    own = HtmlPage((await world.owner.get(f"{path}?{days}")).body)
    assert "There were no plays in this period (first plays" in shared.text
    assert "There were no plays in this period. Choose another one (first plays" in own.text


async def test_a_chat_shows_the_title_the_sender_and_a_picture_of_a_link_and_no_figures(world: World) -> None:
    store, made = world.shared.store, world.made
    name, sender = 'A "<b>' + "W" * 249, "Ada's \"<Records>"

    def rename() -> None:
        users.set_display_name(users.get(made.manager.user_id), sender)
        Artist.update(name=name).where(Artist.id == made.artists[0]).execute()

    store.write(rename).result()
    days = "from=2026-01-05&to=2026-01-09"
    compared = f"compare/share?kind=artist&ids={made.artists[0]},{made.artists[1]}&{days}"
    for path, title, about, picture in (
        (f"artist/{made.artists[0]}/share?{days}", f"{name[:80]}…", "Artist", f"artist/{made.artists[0]}"),
        (f"track/{made.tracks[0]}/share?{days}", "Track 0", f"Track by {name[:80]}…", f"track/{made.tracks[0]}"),
        (compared, f"{name[:80]}…", "Artists compared", f"artist/{made.artists[0]}"),
    ):
        page = HtmlPage((await world.anybody.get(await world.share(f"/insights/{path}"))).body)
        tags = {str(found.get("property")): str(found.get("content")) for tag, found in page.attributes}
        assert tags["og:title"] == title
        assert tags["og:description"] == f"{about}: plays and listeners, 5 Jan 2026 to 9 Jan 2026. Shared by {sender}."
        assert tags["og:image"] == f"{world.anybody.root}/avatars/{picture}"
        drawn = await world.anybody.get(tags["og:image"].removeprefix(world.anybody.root))
        assert (drawn.headers["Content-Type"], size_of(drawn.body)) == ("image/png", (256, 256))


async def test_the_links_and_forms_of_a_page_with_a_refused_form_lead_to_pages(world: World) -> None:
    path, router = f"/insights/artist/{world.made.artists[0]}", Router(ROUTES)
    refused = await world.owner.post(f"{path}/share?period=1-year", {"days": "900"})
    csv = await world.owner.get("/insights/albums/csv?sort=wrong&period=1-year")
    for answer, own in ((refused, path), (csv, "/insights/albums")):
        page = HtmlPage(answer.body)
        links = [each.partition("?")[0] for each in page.links() if not each.startswith("#")]
        assert (answer.status, [each for each in links if not router.match("GET", each)]) == (422, [])
        assert own in page.forms
    assert f"{path}?period=1-year&by=week" in HtmlPage(refused.body).links()
    assert f"{path}#hours" in HtmlPage(refused.body).forms
    assert "Sort: Must be a column of the table." in page.text
    assert "/insights/artists?period=1-year" in page.links()


async def test_a_ranking_of_one_is_a_line_on_shared_pages_and_a_table_with_links_on_own_ones(world: World) -> None:
    made, now = world.made, world.shared.clock.now()
    world.shared.store.write(lambda: made.add_plays([(made.tracks[3], now, "x"), (made.tracks[3], now, "y")])).result()
    path = f"/insights/album/{made.albums[1]}"
    page = HtmlPage((await world.anybody.get(await world.share(f"{path}/share"))).body)
    assert "Tracks Only Track 3." in page.text
    assert [rows[0][0] for rows in page.tables] == ["Day", "UTC"]
    assert HtmlPage((await world.owner.get(path)).body).table("Track") == [["Track 3", "2", "2", "2"]]


async def test_a_link_ends_after_its_days_with_its_owner_and_with_the_rights(world: World) -> None:
    store, now, made = world.shared.store, world.shared.clock.now(), world.made
    track, solo = (f"/insights/track/{made.tracks[each]}/share" for each in (1, 0))
    short, long, other = await world.share(track, "1"), await world.share(track), await world.share(solo)
    assert [await world.status(each) for each in (short, long, other)] == [200, 200, 200]

    world.shared.clock.advance(DAY)
    assert [await world.status(each) for each in (short, long)] == [404, 200]

    store.write(lambda: users.suspend(users.get(made.manager.user_id), now=now)).result()
    assert await world.status(long) == 404
    store.write(lambda: users.reinstate(users.get(made.manager.user_id), now=now)).result()
    assert await world.status(long) == 200

    store.write(lambda: Artist.update(manager=None).where(Artist.id == made.artists[0]).execute()).result()
    assert [await world.status(each) for each in (long, other)] == [200, 404]
    world.owner.cookies["musicsvc"] = add_session(world.shared, made.manager.user_id)
    links = HtmlPage((await world.owner.get("/settings")).body).links()
    assert [any(each.endswith(link) for each in links) for link in (long, other)] == [True, False]


async def test_a_link_that_was_changed_shows_nothing(world: World) -> None:
    link = await world.share(f"/insights/album/{world.made.albums[0]}/share")
    assert await world.status(link) == 200
    payload, _, signature = link.rpartition(".")
    swapped = signature[:-2] + ("AA" if signature[-2:] != "AA" else "BB")
    ends = [f"{payload}.{signature[:-1]}{last}" for last in ALPHABET if last != signature[-1]]
    for wrong in (
        *ends,
        f"{payload}.{swapped}",
        f"{link}=",
        f"{link}%20",
        f"{payload}x.{signature}",
        payload,
        f"{link}.",
        "/reports/1",
        "/reports/%F0",
        f"{link}/",
    ):
        answer = await world.anybody.get(wrong)
        assert answer.status == 404, wrong
        assert b"<h1>" in answer.body


async def test_days_that_are_not_possible_are_shown_again_with_the_error(world: World) -> None:
    for days in ("0", "366", "1.5", "-1", "x"):
        path = f"/insights/track/{world.made.tracks[0]}/share?period=90-days"
        answer = await world.owner.post(path, {"days": days})
        assert answer.status == 422
        page = HtmlPage(answer.body)
        (field,) = [found for tag, found in page.attributes if tag == "input" and found.get("name") == "days"]
        assert (field["value"], field["aria-invalid"]) == (days, "true")
        assert len(page.table("Day")) == 90


async def test_its_owner_ends_a_link_in_the_settings(world: World) -> None:
    link, kept = [await world.share(f"/insights/track/{world.made.tracks[each]}/share") for each in (0, 1)]
    settings = HtmlPage((await world.owner.get("/settings")).body)
    assert [target for target in settings.links() if "/reports/" in target] == [
        f"{world.owner.root}{kept}",
        f"{world.owner.root}{link}",
    ]
    forms = [found["action"] or "" for tag, found in settings.attributes if tag == "form"]
    ended = [action for action in forms if action.startswith("/settings/share-links/")][-1]
    answer = await world.owner.post(ended)
    assert (answer.status, answer.headers["Location"]) == (303, "/settings#share-links")
    assert [await world.status(each) for each in (link, kept)] == [404, 200]
    left = HtmlPage((await world.owner.get("/settings")).body)
    assert [target for target in left.links() if "/reports/" in target] == [f"{world.owner.root}{kept}"]


async def test_the_log_has_the_template_of_the_path_and_not_the_link(world: World) -> None:
    link = await world.share(f"/insights/track/{world.made.tracks[0]}/share")
    assert await world.status(link) == 200

    def logged() -> list[calls.Entry]:
        with activity_log.build(world.shared.store.url) as log:
            log.prepare()
            return log.read(lambda: calls.find(limit=1_000)).result()

    await until(lambda: any(entry.route == "/reports/{link}" for entry in logged()))
    assert link.rpartition("/")[2][:20] not in repr(logged())
