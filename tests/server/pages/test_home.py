"""The first page of an account: its first steps, what waits for it, and its request for access."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from musicsvc.clock import DAY, MovableClock
from musicsvc.config import Registration, Settings
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.accounts.users import Purpose
from musicsvc.store.dashboards import first_steps
from musicsvc.store.dashboards.first_steps import StepName
from musicsvc.store.engine.sql import bound, run
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, User
from musicsvc.store.plays import ingest
from musicsvc.store.schema import history, schema
from tests.rights.world import PASSWORD
from tests.support import databases
from tests.support.html_page import HtmlPage
from tests.support.page_client import PageClient, add_session, page_client, text
from tests.support.shared_server import Shared, on_shared_loop, shared_server
from tests.support.signed_in import Person
from tests.support.waiting import PATIENCE

sqlite = pytest.mark.only_on("sqlite")  # the same over either database
PURPOSE = "0010_purpose"
REQUEST = {"use_case": "Our catalog", "volume": "12 albums", "organization": "Example Records"}


@pytest_asyncio.fixture(loop_scope="module")
async def browser(shared: Shared) -> AsyncIterator[PageClient]:
    async with page_client(shared.client.root) as opened:
        yield opened


async def home(browser: PageClient) -> HtmlPage:
    answer = await browser.get("/")
    assert answer.status == 200
    return HtmlPage(answer.body)


def choose(person: Person, purpose: Purpose) -> None:
    person.do(lambda user: users.set_purpose(user.id, purpose))


@sqlite
@on_shared_loop
async def test_who_registers_gives_a_name_and_says_what_brings_them(shared: Shared, browser: PageClient) -> None:
    fields = {"display_name": " Example Records ", "purpose": "music", "email": "er@new.test", "password": PASSWORD}
    assert (await browser.post("/register", fields)).status == 303
    user = shared.store.read(lambda: users.by_email("er@new.test")).result()
    assert (user.display_name, user.purpose, user.api_access) == ("Example Records", "music", False)
    page = await home(browser)
    assert "Welcome, Example Records" in page.text
    assert "Before you can upload music" in page.text
    assert "/settings/access" in page.links()
    form = text(await browser.get("/settings/access"))
    assert ("What music do you have?" in form, "going to build" in form) == (True, False)


@sqlite
@on_shared_loop
async def test_a_wrong_purpose_and_a_long_name_are_refused_and_what_was_typed_stays(browser: PageClient) -> None:
    fields = {"display_name": "x" * 101, "purpose": "both", "email": "no@new.test", "password": PASSWORD}
    answer = await browser.post("/register", fields)
    assert answer.status == 422
    assert ('id="display_name-error"' in text(answer), 'id="purpose-error"' in text(answer)) == (True, True)
    answer = await browser.post("/register", fields | {"purpose": "program"})
    assert 'value="program" required checked' in text(answer)


@sqlite
async def test_registration_that_grants_access_goes_on_with_the_catalog(
    template: databases.Template, tmp_path: Path
) -> None:
    settings = Settings(registration=Registration(grants_access=True))
    async with shared_server(template, tmp_path, settings) as open_to_all, page_client(open_to_all.client.root) as one:
        fields = {"display_name": "Ann", "purpose": "music", "email": "ann@new.test", "password": PASSWORD}
        await one.post("/register", fields)
        page = await home(one)
        assert "You have access." in page.text
        assert "/import" in page.links()
        assert (await one.get("/settings/access")).headers["Location"] == "/"


@sqlite
@on_shared_loop
async def test_an_account_of_before_chooses_and_its_pages_speak_in_its_words(person: Person) -> None:
    page = await home(person.browser)
    assert ("What brings you here?" in page.text, "Upload a sheet" in page.text) == (True, False)
    form = text(await person.browser.get("/settings/access"))
    assert "What do you have, or what are you going to build?" in form
    assert (await person.browser.post("/settings/purpose", {"purpose": "both"})).status == 422
    for purpose, words in (("program", "Your first request"), ("music", "Upload a sheet")):
        answer = await person.browser.post("/settings/purpose", {"purpose": purpose})
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        page = await home(person.browser)
        assert ("What brings you here?" in page.text, words in page.text) == (False, True)


@sqlite
@on_shared_loop
async def test_the_request_waits_is_denied_with_its_reason_and_approved_where_it_was_left(
    person: Person,
) -> None:
    choose(person, "music")
    clock = person.shared.clock
    assert (await person.browser.post("/settings/access", REQUEST)).headers["Location"] == "/"
    page = await home(person.browser)
    assert ("You asked for access on 1 Mar 2026." in page.text, "Waiting" in page.text) == (True, True)
    assert "/settings/access" not in page.links()
    assert (await person.browser.get("/settings/access")).headers["Location"] == "/"
    person.do(lambda _: api_access.deny(person.email, "Say <b>which</b> artists.", now=clock.now()))
    page = await home(person.browser)
    assert "Say <b>which</b> artists." in page.text
    assert "You can ask again from 2 Mar 2026, 12:00 UTC on" in page.text
    assert "/settings/access" not in page.links()
    early = await person.browser.post("/settings/access", REQUEST)
    assert (early.status, "You can ask again from" in text(early)) == (409, True)
    clock.advance(DAY)
    person.browser.cookies["musicsvc"] = add_session(person.shared, person.id)
    assert "/settings/access" in (await home(person.browser)).links()
    assert "You can ask again now" in text(await person.browser.get("/settings/access"))
    assert (await person.browser.post("/settings/access", REQUEST)).status == 303
    person.do(lambda _: api_access.approve(person.email, now=clock.now()))
    page = await home(person.browser)
    assert "An administrator approved your request on 2 Mar 2026." in page.text
    assert "/import" in page.links()
    person.do(lambda user: api_access.revoke(user, now=clock.now()))
    page = await home(person.browser)
    assert ("withdrawn since" in page.text, "/settings/access" in page.links()) == (True, True)


@sqlite
@on_shared_loop
async def test_an_administrator_sees_who_waits_and_needs_no_steps(person: Person) -> None:
    person.do(lambda user: users.set_admin(user, admin=True, now=1))
    before = (await home(person.browser)).text
    assert ("Waiting for you" in before, "What brings you here?" in before) == (False, False)
    waiting = f"waiting{person.id}@label.test"
    person.do(lambda _: api_access.request(waiting, *REQUEST.values(), now=1))
    assert "Requests for access wait for a decision." in (await home(person.browser)).text
    person.do(lambda _: api_access.deny(waiting, "No", now=1))


@sqlite
@on_shared_loop
async def test_a_file_that_is_read_waits_on_the_first_page(developer: Person) -> None:
    choose(developer, "music")
    sent = await developer.browser.post("/import", {"file": ("songs.csv", b"Title,Artist\nAir,Trio\n")})
    path = sent.headers["Location"]
    async with asyncio.timeout(PATIENCE):
        while b"/start" not in (await developer.browser.get(path)).body:  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    page = await home(developer.browser)
    assert ("songs.csv is read, but not imported yet." in page.text, path in page.links()) == (True, True)


def steps(store: Store, user_id: int) -> Mapping[StepName, bool]:
    return store.read(lambda: first_steps.load(user_id).steps).result()


def test_each_step_of_people_with_music_is_done_by_what_they_have(store: Store, clock: MovableClock) -> None:
    def add(unit: Callable[[], object]) -> None:
        store.write(lambda: unit() and None).result()

    user = store.write(lambda: users.create("ann@label.test", now=1)).result()
    add(lambda: users.set_purpose(user.id, "music"))
    done: dict[StepName, bool] = {"name": True, "access": False, "catalog": False, "cover": False, "plays": False}
    assert steps(store, user.id) == done
    add(lambda: api_access.grant(users.get(user.id), now=2))
    add(lambda: Artist.create(id=7, name="Trio", manager=user.id, created_at=1))
    assert steps(store, user.id) == done | {"access": True}
    add(lambda: Track.create(id=5, name="Air", duration=60_000, created_at=1))
    add(lambda: TrackArtist.create(track=5, artist=7, position=0))
    assert steps(store, user.id) == done | {"access": True, "catalog": True}
    assert store.read(lambda: first_steps.load(user.id).coverless).result() == ("track", 5)
    add(lambda: Album.create(id=3, name="Suite", created_at=1))
    add(lambda: AlbumArtist.create(album=3, artist=7, position=0))
    assert store.read(lambda: first_steps.load(user.id).coverless).result() == ("album", 3)
    add(lambda: Album.update(image="https://cover.test/3.jpg").execute())
    assert steps(store, user.id) == done | {"access": True, "catalog": True, "cover": True}
    caller = tokens.identity_of(store.read(lambda: users.get(user.id)).result())
    play = ingest.ReportedPlay(track_id=5, played_at=clock.now())
    add(lambda: ingest.report([play], actor=caller, now=clock.now()))
    found = store.read(lambda: first_steps.load(user.id)).result()
    assert (set(found.steps.values()), found.next, str(found.first_play)) == ({True}, None, "2026-03-01")


def test_each_step_of_people_with_a_program_is_done_by_what_they_have(store: Store) -> None:
    user = store.write(lambda: users.create("ben@label.test", api_access=True, now=1)).result()
    store.write(lambda: users.set_purpose(user.id, "program")).result()
    done: dict[StepName, bool] = {"name": True, "access": True, "token": False, "call": False}
    assert steps(store, user.id) == done
    token, _ = store.write(lambda: tokens.create(user, "laptop", now=2)).result()
    assert steps(store, user.id) == done | {"token": True}
    store.write(lambda: tokens.touch({token.id: 3})).result()
    assert steps(store, user.id) == done | {"token": True, "call": True}


def test_what_an_account_has_decides_where_it_has_not_chosen(store: Store) -> None:
    def purpose(email: str) -> str | None:
        return store.read(lambda: first_steps.load(users.by_email(email).id).purpose).result()

    for email in ("none@label.test", "token@label.test", "both@label.test"):
        user = store.write(lambda email=email: users.create(email, api_access=True, now=1)).result()  # type: ignore[misc]  # bound in the loop
        if not email.startswith("none"):
            store.write(lambda user=user: tokens.create(user, "laptop", now=2)).result()  # type: ignore[misc]  # bound in the loop
    store.write(lambda: Artist.create(name="Trio", manager=user.id, created_at=1)).result()
    assert [purpose(f"{name}@label.test") for name in ("none", "token", "both")] == [None, "program", "music"]


def test_accounts_of_a_former_schema_have_not_chosen(new_database: Callable[..., str], tmp_path: Path) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    for name in history.available()[: history.available().index(PURPOSE)]:
        shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    insert = "INSERT INTO account (id, email, email_key, display_name, admin, api_access, reports_plays, created_at)"
    ann, ben = (
        "(1, 'a@b.test', 'a@b.test', 'Ann', false, true, false, 1)",
        "(2, 'b@b.test', 'b@b.test', 'Ben', true, false, false, 2)",
    )
    with schema.migrating(url) as database, bound(database), database.atomic():
        run(f"{insert} VALUES {ann}, {ben}")
    assert PURPOSE in schema.upgrade(url)
    with opening.connect(url) as store:
        found = store.read(
            lambda: [*User.select(User.display_name, User.api_access, User.purpose).order_by(User.id).tuples()]
        )
        assert [(name, bool(access), purpose) for name, access, purpose in found.result()] == [
            ("Ann", True, None),
            ("Ben", False, None),
        ]
        store.write(lambda: users.set_purpose(2, "program")).result()
        assert steps(store, 2) == {"name": True, "access": False, "token": False, "call": False}
