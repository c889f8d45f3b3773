"""A token that a stranger made with another person's e-mail: the operator sees it, the owner's password ends it."""

import re

from musicsvc.clock import isoformat
from musicsvc.store.accounts import password_links, tokens, users
from tests.rights.world import PASSWORD
from tests.support.office import Office
from tests.support.page_client import page_client, text
from tests.support.shared_server import on_shared_loop

NEW = "four romances for viola"
SHOWN = re.compile(
    r'/admin/tokens/(\d+)">([^<]+)</a></th>\s*<td><code>(\w{4})</code></td>\s*<td><time datetime="([^"]+)'
)


async def plant(office: Office, name: str) -> str:
    """Register with the e-mail of another person, as anybody can, and return the token."""
    body = {"email": f"{name}@{office.domain}", "password": PASSWORD, "token_name": f"tool of {name}"}
    answer = await office.shared.client.holding(None).post("auth/register", body)
    assert answer.status == 200
    return str(answer.json["user"]["access_token"])


async def status(office: Office, value: str) -> int:
    return (await office.shared.client.holding(value).get("playlists")).status


@on_shared_loop
async def test_a_planted_token_is_shown_to_the_operator_and_ends_with_the_owners_password(office: Office) -> None:
    value = await plant(office, "cleo")
    asked, clock = office.request("cleo"), office.shared.clock
    assert await status(office, value) == 403
    clock.advance(60)
    page = text(await office.act(f"/admin/requests/{asked}/approve", 200))
    user_id = office.do(lambda: users.by_email(f"cleo@{office.domain}").id)
    (planted,) = office.do(lambda: tokens.list(users.get(user_id)))
    ((token_id, name, last_four, created),) = SHOWN.findall(page)
    assert (int(token_id), name, last_four) == (planted.id, "tool of cleo", value[-4:])
    assert created == isoformat(planted.created_at)
    assert await status(office, value) == 200
    own = office.token(user_id, "own")[1]

    link = office.do(lambda: password_links.create(users.get(user_id), now=clock.now()))
    async with page_client(office.browser.root) as owner:
        assert (await owner.post(f"/password/{link.secret}", {"new_password": NEW})).status == 303
        assert tokens.BEFORE_ACCESS in text(await owner.get("/settings/developers"))
    assert (await status(office, value), await status(office, own)) == (401, 200)


@on_shared_loop
async def test_granting_access_shows_the_tokens_that_work_again(office: Office) -> None:
    value = await plant(office, "dora")
    user_id = office.do(lambda: users.by_email(f"dora@{office.domain}").id)
    page = text(await office.act(f"/admin/accounts/{user_id}/grant-access", 200))
    assert [found[1:3] for found in SHOWN.findall(page)] == [("tool of dora", value[-4:])]
    assert await status(office, value) == 200
    await office.act(f"/admin/accounts/{user_id}/grant-access")  # nothing changes
    for more in ("laptop", "phone"):
        office.token(user_id, more)
    (first, *_) = office.do(lambda: tokens.list(users.get(user_id)))
    office.do(lambda: tokens.revoke(first.id, "unknown", now=office.shared.clock.now()))
    await office.act(f"/admin/accounts/{user_id}/revoke-access")
    page = text(await office.act(f"/admin/accounts/{user_id}/grant-access", 200))
    assert [found[1] for found in SHOWN.findall(page)] == ["laptop", "phone"]
