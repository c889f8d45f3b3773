"""Administrators edit, delete and promote accounts, assign artists, and make backups."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.backups import folder
from musicsvc.store.catalog import artists
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Artist, Playlist, User
from tests.support.html_page import HtmlPage
from tests.support.import_files import import_file
from tests.support.office import Office
from tests.support.page_client import text
from tests.support.serving import Answer
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop


def manages(office: Office, account: int | None, *names: str) -> list[int]:
    """Create artists that the account manages."""
    return office.do(lambda: [Artist.create(name=name, manager=account, created_at=1).id for name in names])  # type: ignore[no-any-return]


def manager_of(office: Office, artist: int) -> object:
    return office.do(lambda: artists.get(artist).manager_id)


def user(office: Office, account: int) -> User:
    found: User = office.do(lambda: users.get(account))
    return found


async def test_an_account_is_edited_and_errors_stand_beside_the_fields(office: Office) -> None:
    ben, path = office.account("ben"), "/admin/accounts/{}"
    await office.act(path.format(ben) + "/edit", email=f"benjamin@{office.domain}", display_name="Benjamin")
    assert (user(office, ben).email, user(office, ben).display_name) == (f"benjamin@{office.domain}", "Benjamin")
    taken = text(await office.act(path.format(ben) + "/edit", 422, email=f"ann@{office.domain}", display_name="B"))
    assert '<small class="error" id="email-error">The e-mail has already been taken.</small>' in taken
    assert office.events() == [("account.edited", ben, None, "display name and e-mail")]
    office.do(lambda: users.edit(users.get(ben), display_name="Ben\n& Co.", now=1))
    shown = HtmlPage((await office.page(path.format(ben))).encode()).forms[path.format(ben) + "/edit"]
    kept = shown["display_name"].replace("\n", "")  # browsers drop line breaks of a field
    sent = shown | {"display_name": kept, "email": f"ben@{office.domain}"}
    assert (await office.browser.post(path.format(ben) + "/edit", sent)).status == 303
    assert user(office, ben).display_name == "Ben\n& Co."


async def test_of_two_administrators_who_act_at_once_the_second_is_told(office: Office) -> None:
    ben, domain = office.account("ben", api_access=True), office.domain
    path = f"/admin/accounts/{ben}"
    form = HtmlPage((await office.page(path)).encode()).forms[f"{path}/edit"]

    async def save(sent: Mapping[str, str], status: int = 303) -> Answer:
        answer = await office.browser.post(f"{path}/edit", sent)
        assert answer.status == status
        return answer

    await save(form | {"display_name": "Benjamin"})
    await save(form | {"email": f"benjamin@{domain}"})
    assert (user(office, ben).email, user(office, ben).display_name) == (f"benjamin@{domain}", "Benjamin")
    refused = await save(form | {"display_name": "Benno"}, 422)
    assert "Somebody else has changed this to Benjamin. Save again to replace it." in text(refused)
    await save(HtmlPage(refused.body).forms[f"{path}/edit"])
    assert (user(office, ben).email, user(office, ben).display_name) == (f"benjamin@{domain}", "Benno")
    token, _ = office.token(ben)
    for act, said in ((f"{path}/suspend", "suspended"), (f"/admin/tokens/{token}/revoke", "revoked")):
        for reason, told in (("Spam.", False), ("Spam.", False), ("Fraud.", True)):
            answer = await office.act(act, reason=reason)
            page = await office.page(answer.headers["Location"])
            assert (f"was {said} before. The earlier reason stays." in page) == told


async def test_of_two_administrators_who_assign_an_artist_the_second_is_told(office: Office) -> None:
    ben, cleo = office.account("ben"), office.account("cleo")
    for former in (None, office.account("dora")):
        (trio,) = manages(office, former, "Trio")
        path = f"/admin/artists/{trio}"
        shown = await office.page(path)
        for name, said in (("ben", 303), ("ben", 303), ("cleo", 422)):
            sent = HtmlPage(shown.encode()).forms[f"{path}/assign"] | {"email": f"{name}@{office.domain}"}
            answer = await office.browser.post(f"{path}/assign", sent)
            assert (answer.status, manager_of(office, trio)) == (said, ben)
        assert f"Somebody else has made ben@{office.domain} the manager." in text(answer)
        again = HtmlPage(answer.body).forms[f"{path}/assign"]
        assert (await office.browser.post(f"{path}/assign", again)).status == 303
        assert manager_of(office, trio) == cleo


async def test_an_account_becomes_administrator_and_reporter_and_loses_this_right(office: Office) -> None:
    ben = office.account("ben")
    path = f"/admin/accounts/{ben}"
    await office.act(f"{path}/make-admin")
    await office.act(f"{path}/grant-plays")
    assert (user(office, ben).admin, user(office, ben).api_access, user(office, ben).reports_plays) == (True,) * 3
    shown = await office.page(path)
    assert f'action="{path}/end-admin"' in shown
    assert f'action="{path}/grant-plays"' not in shown
    await office.act(f"{path}/end-admin")
    assert not user(office, ben).admin
    assert "Revoke API access and reports of others' plays" in text(await office.browser.get(path))
    await office.act(f"{path}/revoke-access")
    assert "has no API access any more, and cannot report plays of others." in await office.page(path)
    assert not user(office, ben).reports_plays
    own = f"/admin/accounts/{office.admin}"
    assert f'action="{own}/end-admin"' not in await office.page(own)
    refused = text(await office.act(f"{own}/end-admin", 409))
    assert "You cannot end your own right. Another administrator can." in refused
    kinds = ["admin.granted", "access.granted", "admin.revoked", "access.revoked"]
    assert [kind for kind, account, *_ in office.events() if account == ben] == kinds


async def test_artists_are_assigned_one_by_one_and_all_together(office: Office) -> None:
    ben, cleo = office.account("ben"), office.account("cleo")
    first, second, third = manages(office, ben, f"Solo {office.domain}", "Duo", "Trio")
    listed = await office.page(f"/admin/artists?manager={ben}")
    assert f"3 artists of ben@{office.domain}" in listed
    assert "Trio" in await office.page("/admin/artists?manager=")
    found = await office.page(f"/admin/artists?q=solo {office.domain}")
    assert f'<a href="/admin/artists/{first}">Solo {office.domain}</a>' in found
    beyond = await office.page(f"/admin/artists?q=solo {office.domain}&page=2")
    assert ("There are no more rows." in beyond, "No artist has" in beyond) == (True, False)
    path = f"/admin/artists/{first}"
    unknown = text(await office.act(f"{path}/assign", 422, email="nobody@label.test"))
    assert "There is no account nobody@label.test." in unknown
    await office.act(f"{path}/assign", email=f"cleo@{office.domain}")
    assert f'<a href="/admin/accounts/{cleo}">cleo@{office.domain}</a>' in await office.page(path)
    account = f"/admin/accounts/{ben}"
    await office.act(f"{account}/assign-artists", 422, email=f"ben@{office.domain}")
    await office.act(f"{account}/assign-artists", email=f"cleo@{office.domain}")
    assert [manager_of(office, each) for each in (first, second, third)] == [cleo] * 3
    assert "manages none" in await office.page(account)
    assert {kind for kind, *_ in office.events()} == {"artist.assigned", "artist.unassigned"}


async def test_an_account_is_deleted_after_a_page_has_shown_what_goes(office: Office) -> None:
    ben, cleo = office.account("ben"), office.account("cleo")
    (trio,) = manages(office, ben, "Trio")
    office.do(lambda: [Playlist.create(owner=ben, name=name, created_at=1).id for name in ("Rags", "Waltzes")])
    path = f"/admin/accounts/{ben}/delete"
    shown = await office.page(path)
    assert "<li>2 playlists</li>" in shown
    assert "The account manages 1 artist: <bdi>Trio</bdi>" in shown
    refused = text(await office.act(path, 409))
    assert f"ben@{office.domain} manages Trio." in refused
    both = text(await office.act(path, 422, artists_to="nobody@label.test", with_artists="on"))
    assert 'name="with_artists" checked>' in both
    await office.act(path, 422, artists_to=f"ben@{office.domain}")
    done = await office.act(path, artists_to=f"cleo@{office.domain}")
    assert done.headers["Location"] == "/admin/accounts"
    assert f"ben@{office.domain} is deleted." in await office.page("/admin/accounts")
    assert (await office.browser.get(path)).status == 404
    assert manager_of(office, trio) == cleo
    assert ("account.deleted", ben, None, "2 playlists") in office.events()
    own = text(await office.act(f"/admin/accounts/{office.admin}/delete", 409))
    assert "This is your own account. Delete it in the settings." in own


async def test_imports_of_all_accounts_are_listed_and_undone(office: Office, tmp_path: Path) -> None:
    office.account("ben", api_access=True)
    options = ImportOptions(user=f"ben@{office.domain}")
    rows = [{"track": f"Rag {number}", "artist": f"Trio of {office.domain}"} for number in range(3)]
    catalog = Catalog(options)
    done = await asyncio.to_thread(import_file, office.shared.store, tmp_path / "rags.jsonl", catalog, rows)
    listed = await office.page("/admin/imports")
    assert f'<td data-label="Account">ben@{office.domain}</td>' in listed
    undo = f"/admin/imports/{done.run}/undo"
    assert f'href="{undo}"' in listed
    shown = await office.page(undo)
    assert f"<bdi>rags.jsonl</bdi>, catalog, of ben@{office.domain}, begun" in shown
    assert "Deletes: 3 tracks, 1 artist." in shown
    asked = await office.act(undo)
    assert asked.headers["Location"] == "/admin/imports"
    async with asyncio.timeout(20):
        while "hx-get" in (shown := await office.page("/admin/imports")):  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    assert "Undone: 3 tracks, 1 artist." in shown
    assert [kind for kind, *_ in office.events()] == ["import.undo_started", "import.undone"]
    assert (await office.browser.get("/admin/imports/99/undo")).status == 404


@pytest.mark.only_on("sqlite")
async def test_backups_are_listed_and_created_one_at_a_time(office: Office, shared: Shared) -> None:
    place = Path(shared.store.url.removeprefix("sqlite:///")).parent / "backups"
    before = len(folder.entries(place))
    done = await office.act("/admin/backups")
    assert done.headers["Location"] == "/admin/backups"
    newest, *others = folder.entries(place)
    assert len(others) == before
    shown = await office.page("/admin/backups")
    assert f"{newest.file.name} is created and verified." in shown
    assert f'<th scope="row">{newest.file.name}</th>' in shown
    with folder.draft(place / "musicsvc-20260101T000000Z.db"):
        assert "A backup is being created." in await office.page("/admin/backups")
        refused = await office.act("/admin/backups", 409)
        assert "A backup is being created. It will be in the list." in text(refused)
    answers = await asyncio.gather(*(office.browser.post("/admin/backups", {}) for _ in range(2)))
    assert {answer.status for answer in answers} <= {303, 409}
    assert "damaged" not in await office.page("/admin/backups")
    (place / newest.file.name).write_bytes(b"no database")
    assert newest.file.name in await office.page("/admin/backups")


@pytest.mark.only_on("postgres")
async def test_the_page_of_backups_names_the_tools_of_postgresql(office: Office) -> None:
    assert "Back up PostgreSQL with its own tools." in await office.page("/admin/backups")
