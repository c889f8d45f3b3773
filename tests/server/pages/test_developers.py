"""Account settings for developers: API access and access tokens."""

import re
from typing import Any

import pytest

from musicsvc.clock import DAY, SECOND
from musicsvc.store.accounts import api_access, tokens
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.models import Token
from tests.rights.world import PASSWORD
from tests.support.page_client import text
from tests.support.serving import Answer
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person
from tests.support.waiting import until

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

HOME, ACCESS = "/settings/developers", "/settings/access"
SCRIPT = "<script>alert(1)</script>"
VALUE = re.compile(r"msvc_[0-9A-Za-z]{46}")
REQUEST = {"use_case": "A page of figures", "volume": "5,000 a day", "organization": "Label"}


async def page(person: Person, path: str = HOME) -> str:
    answer = await person.browser.get(path)
    assert answer.status == 200
    return answer.body.decode()


async def logged_calls(person: Person, route: str, number: int = 1) -> list[Entry]:
    """Return the account's calls in the activity log, once it has this number of calls of the route."""
    with activity_log.build(person.shared.store.url) as log:
        assert log.open_existing()

        def found() -> list[Entry]:
            return log.read(lambda: calls.find(calls.Filter(account_id=person.id), limit=10_000)).result()

        await until(lambda: [entry.route for entry in found()].count(route) == number)
        return found()


async def create(person: Person, **changes: Any) -> Answer:
    fields = {"name": "laptop", "scope": "read-write", "days": "90", "password": PASSWORD} | changes
    return await person.browser.post(f"{HOME}/tokens", fields)


@on_shared_loop
async def test_a_request_for_access_is_followed_to_its_answer(person: Person) -> None:
    now = person.shared.clock.now()
    assert "You have no token." in await page(person)
    sent = await person.browser.post(ACCESS, REQUEST)
    assert (sent.status, sent.headers["Location"]) == (303, "/")
    waiting = await page(person)
    assert "Your request was sent." in waiting
    assert "You asked for access on 1 Mar 2026." in waiting
    assert "Request access" not in waiting
    (asked,) = person.shared.store.read(lambda: api_access.list(text=person.email)).result()
    assert asked.request
    assert (asked.request.use_case, asked.request.volume, asked.request.organization) == tuple(REQUEST.values())

    person.do(lambda _: api_access.deny(person.email, f"too vague {SCRIPT}", now=now - DAY))
    denied = await page(person)
    assert "was denied on 28 Feb 2026" in denied
    assert "too vague &lt;script&gt;alert(1)&lt;/script&gt;" in denied

    assert (await person.browser.post(ACCESS, REQUEST)).status == 303
    person.do(lambda _: api_access.approve(person.email, now=now))
    assert "Create a token" in await page(person)
    person.do(lambda user: api_access.revoke(user, now=now))
    assert "Withdrawn" in await page(person)
    asked_by_page = [event.actor for event in person.events() if event.kind == "access.requested"]
    assert asked_by_page == ["page", "page"]


@on_shared_loop
async def test_a_faulty_request_is_shown_again_with_what_was_typed(person: Person) -> None:
    answer = await person.browser.post(ACCESS, {**REQUEST, "use_case": " ", "volume": SCRIPT * 11})
    shown = text(answer)
    assert answer.status == 422
    assert re.findall(r'class="error" id="(\w+)-error"', shown) == ["use_case", "volume"]
    assert SCRIPT not in answer.body.decode()
    assert f'value="{SCRIPT * 11}"' in shown
    assert 'value="Label"' in shown

    assert (await person.browser.post(ACCESS, REQUEST)).status == 303
    twice = await person.browser.post(ACCESS, REQUEST)
    assert (twice.status, "A request of the account is pending already." in text(twice)) == (409, True)


@on_shared_loop
async def test_the_value_of_a_token_is_shown_once_and_works(developer: Person) -> None:
    answer = await create(developer, name="dashboard", scope="read", days="30")
    assert answer.status == 200
    shown = text(answer)
    (value,) = set(VALUE.findall(shown))
    assert f'curl -H "Authorization: Bearer {value}" {developer.shared.client.root}/api/v1/users/me' in shown
    assert [await developer.status(value) for _ in range(3)] == [200] * 3
    refused = await developer.shared.client.holding(value).post("artists", {"name": "Amy Beach"})
    assert refused.status == 403

    (token,) = developer.do(tokens.list)
    expires = developer.shared.clock.now() + 30 * DAY
    assert (token.name, token.scope, token.expires_at) == ("dashboard", "read", expires)
    listed = await page(developer)
    for part in ("dashboard", f"ends in {value[-4:]}", "Read only", "1 Mar 2026", "in 30 days"):
        assert part in listed
    detail = await page(developer, f"{HOME}/tokens/{token.id}")
    assert re.findall(r'aria-current="(\w+)">(\w+)<', listed + detail) == [
        ("page", "Developers"),
        ("true", "Developers"),
    ]
    event = developer.events()[-1]
    assert (event.kind, event.actor, event.token_id) == ("token.created", "page", token.id)
    logged = str(await logged_calls(developer, "/settings/developers/tokens"))
    assert not [found for found in (listed, detail, logged, str(developer.events())) if value in found]


@on_shared_loop
async def test_the_requests_of_the_last_7_days_are_shown(developer: Person) -> None:
    token, value = developer.token()
    developer.token("unused")
    assert [await developer.status(value) for _ in range(5)] == [200] * 5
    logged = await logged_calls(developer, "/api/v1/users/me", 5)
    entry = next(entry for entry in logged if entry.token_id == token.id)
    since = developer.shared.clock.now() - 7 * DAY
    earlier = [entry._replace(at=at, request_id="earlier") for at in (since - 2, since - 1, since, since + 1)]
    with activity_log.build(developer.shared.store.url) as log:
        assert log.open_existing()
        log.write(lambda: calls.add(earlier)).result()
    rows = r'(?s)<th scope="row"><a [^>]*>(\w+)</a>.*?data-label="Requests[^>]*>([\w,]+)<'
    assert re.findall(rows, await page(developer)) == [("unused", "0"), ("laptop", "7")]
    detail = await page(developer, f"{HOME}/tokens/{token.id}")
    assert re.search(r"last 7 days</dt><dd>7<", detail)


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"password": "wrong words"}, {"password": "The password is wrong."}),
        ({"name": "ab", "days": "91", "scope": "write"}, {"name": "", "days": "", "scope": ""}),
        ({"name": "", "days": "1.5", "password": ""}, {"name": "", "days": "", "password": ""}),
    ],
    ids=["password", "out of range", "malformed"],
)
@on_shared_loop
async def test_a_faulty_token_is_not_created_and_the_form_keeps_its_fields(
    developer: Person, changes: dict[str, str], faults: dict[str, str]
) -> None:
    answer = await create(developer, **changes)
    shown = text(answer)
    found = dict(re.findall(r'class="error" id="(\w+)-error">([^<]*)<', shown))
    assert (answer.status, found.keys()) == (422, faults.keys())
    assert all(message in found[name] for name, message in faults.items())
    assert f'name="days" type="number" autocomplete="off" value="{changes.get("days", "90")}"' in shown
    assert not [typed for typed in (PASSWORD, "wrong words") if typed in shown]
    assert developer.do(tokens.list) == ()


@on_shared_loop
async def test_without_access_no_token_is_created(person: Person) -> None:
    assert "Create a token" not in await page(person)
    answer = await create(person)
    assert answer.status == 403
    assert "The account has no API access." in text(answer)
    assert person.do(tokens.list) == ()


@on_shared_loop
async def test_a_regenerated_token_has_another_value(developer: Person) -> None:
    token, old = developer.token()
    path = f"{HOME}/tokens/{token.id}"
    wrong = await developer.browser.post(f"{path}/regenerate", {"password": "wrong words"})
    assert (wrong.status, "The password is wrong." in text(wrong)) == (422, True)
    assert await developer.status(old) == 200

    answer = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD})

    (value,) = set(VALUE.findall(text(answer)))
    assert [await developer.status(old), await developer.status(value)] == [401, 200]
    assert value not in await page(developer, path)
    assert (developer.events()[-1].kind, developer.events()[-1].actor) == ("token.regenerated", "page")
    developer.do(lambda _: tokens.revoke(token.id, "lost", now=1))
    revoked = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD})
    assert (revoked.status, "is revoked and cannot be regenerated" in text(revoked)) == (409, True)


@on_shared_loop
async def test_the_old_value_of_a_regenerated_token_is_accepted_for_some_hours(developer: Person) -> None:
    token, first = developer.token()
    path = f"{HOME}/tokens/{token.id}"
    answer = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD, "overlap": "24"})
    (second,) = set(VALUE.findall(text(answer)))
    assert [await developer.status(first), await developer.status(second)] == [200, 200]
    for shown in (text(answer), await page(developer, path)):
        assert "accepted until 2 Mar 2026" in shown

    answer = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD, "overlap": "1"})
    (third,) = set(VALUE.findall(text(answer)))
    assert [await developer.status(value) for value in (first, second, third)] == [401, 200, 200]

    ended = developer.shared.clock.now() - 1
    developer.do(lambda _: Token.update(former_expires_at=ended).where(Token.id == token.id).execute())
    assert [await developer.status(value) for value in (second, third)] == [401, 200]
    assert "accepted until" not in await page(developer, path)
    assert "accept it for 24 hours" in await page(developer, path)
    expired, _ = developer.token("expired")
    developer.do(lambda _: Token.update(expires_at=ended).where(Token.id == expired.id).execute())
    assert "accept it for 24 hours" not in await page(developer, f"{HOME}/tokens/{expired.id}")

    answer = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD, "overlap": "24"})
    await developer.browser.post(f"{path}/delete")
    assert [await developer.status(value) for value in (third, VALUE.findall(text(answer))[0])] == [401, 401]
    too_long = await developer.browser.post(f"{path}/regenerate", {"password": PASSWORD, "overlap": "25"})
    assert too_long.status == 422


@on_shared_loop
async def test_a_deleted_token_is_refused_and_stands_among_the_revoked(developer: Person) -> None:
    token, value = developer.token(f"{SCRIPT}")
    assert await developer.status(value) == 200
    answer = await developer.browser.post(f"{HOME}/tokens/{token.id}/delete")
    assert (answer.status, answer.headers["Location"]) == (303, HOME)
    assert await developer.status(value) == 401
    listed = await page(developer)
    assert SCRIPT not in listed
    assert listed.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2  # in the notice and in the list
    assert re.search(r'(?s)Revoked tokens.*data-label="Reason">deleted by its owner<', listed)
    assert "Regenerate" not in await page(developer, f"{HOME}/tokens/{token.id}")
    event = developer.events()[-1]
    assert (event.kind, event.actor, event.reason) == ("token.revoked", "page", "deleted by its owner")


@on_shared_loop
async def test_tokens_warn_14_days_7_days_and_1_day_before_they_expire(developer: Person) -> None:
    for days in (1, 2, 7, 8, 14, 15):
        developer.token(f"{days} days", days=days)
    found = re.findall(r'(?s)data-warning="(\w+)">\s+The token <strong>([\w ]+)<', await page(developer))
    assert found == [
        ("day", "1 days"),
        ("week", "2 days"),
        ("week", "7 days"),
        ("fortnight", "8 days"),
        ("fortnight", "14 days"),
    ]
    now = developer.shared.clock.now()
    developer.do(lambda user: tokens.create(user, "long gone", days=1, now=now - 3 * DAY - SECOND))
    listed = await page(developer)
    assert "expired 2 days ago" in listed
    assert not re.search(r"data-warning[^>]*>\s+The token <strong>long gone", listed)
