"""The rules of the points of the report card: what is a fault, and above all, what is none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.clock import SECOND
from musicsvc.server.demo.journal import Contents, Ender, Entry, SentToken
from musicsvc.server.demo.scoring.card import Card
from musicsvc.server.demo.scoring.point import MOST_SHOWN, State
from musicsvc.server.openapi import document
from musicsvc.server.routes.route import Router
from musicsvc.server.routes.table import ROUTES

ROUTER = Router(ROUTES)
ALBUMS, TRACKS, PLAYS, PLAYLISTS = (f"/api/v1/{name}" for name in ("albums", "tracks", "plays", "playlists"))
SPENT = {"Retry-After": "2", "RateLimit": '"token";r=0;t=2'}
BUSY = {"Retry-After": "1"}
LARGE = 2**37 - 999_991
REVOKED = {"WWW-Authenticate": 'Bearer error="invalid_token", error_description="revoked"'}
MOMENT = 0.001  # seconds that a request takes


@dataclass(frozen=True)
class Sent:
    """A request and its response. `after`: seconds since the one before; `token`: the id of its token.

    `advanced`: seconds by which the clock of the demo was moved before it.
    """

    method: str
    target: str
    status: int | None = 200
    body: Any = None
    answer: Any = None
    headers: Mapping[str, str] | None = None
    returned: Mapping[str, str] | None = None
    after: float = 1.0
    advanced: float = 0.0
    token: int = 1
    account: int = 1
    last_four: str = "abcd"
    scope: str = "read-write"
    ended_by: Ender | None = None


def page(number: int, last: int, *rows: Any, size: int = 20, total: int | None = None) -> Any:
    total = last * size if total is None else total
    return {"tracks": {"current_page": number, "last_page": last, "per_page": size, "total": total, "data": [*rows]}}


def lost(method: str, target: str, body: Any, **more: Any) -> Sent:
    return Sent(method, target, None, body, ended_by="demo", **more)


@cache
def openapi() -> Any:
    return document.document()


def card_of(*requests: Sent, world: str = "edge") -> Card:
    """Return the card of these requests, one after the other."""
    card, now, demo = Card(openapi(), world), 1000.0, 5000.0
    for number, each in enumerate(requests, 1):
        now += each.after
        demo += each.after + each.advanced
        card.ended(_entry(each, number, now, demo), Contents(_bytes(each.body), _bytes(each.answer)))
    return card


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def _entry(sent: Sent, number: int, now: float, demo: float) -> Entry:
    route, _ = ROUTER.match(sent.method, sent.target.partition("?")[0])
    return Entry(
        number=number,
        at=int(demo * SECOND),
        ended_at=int((demo + MOMENT) * SECOND),
        began=now,
        ended=now + MOMENT,
        method=sent.method,
        target=sent.target,
        route=route.path,
        status=sent.status,
        ended_by=sent.ended_by,
        injection=None,
        request_id="r",
        token=SentToken(None, sent.last_four, sent.token, "t", sent.scope, sent.account, "Ada"),
        headers=sent.headers or {},
        body=None,
        size=0,
        is_cut=False,
        is_json=False,
        response_headers=sent.returned or {},
        message=None,
        errors={},
    )


def failed(*requests: Sent, world: str = "edge") -> dict[str, int]:
    """Return the numbers of violations of the points that these requests fail."""
    results = card_of(*requests, world=world).report().results
    return {result.point.name: result.number for result in results if result.state is State.FAILED}


def passed(*requests: Sent, world: str = "edge") -> set[str]:
    results = card_of(*requests, world=world).report().results
    return {result.point.name for result in results if result.state is State.PASSED}


def get(target: str, **more: Any) -> Sent:
    return Sent("GET", target, **more)


def post(target: str, body: Any, **more: Any) -> Sent:
    return Sent("POST", target, 201, body, **more)


def plays(*ids: str | None, minute: int = 0) -> Any:
    rows = [{"track_id": 7, "played_at": f"2026-01-01T00:{minute + at:02}:00Z"} for at in range(len(ids))]
    return {"plays": [row | ({} if name is None else {"client_id": name}) for row, name in zip(rows, ids, strict=True)]}


LIMITED = get(ALBUMS, status=429, returned=SPENT)
OVERLOADED = get(ALBUMS, status=503, returned=BUSY)
REFUSED = get(ALBUMS, status=401, returned=REVOKED)
ROW = {
    "id": LARGE,
    "model_type": "artist",
    "name": "Cafe\u0301 \U0001d11e",
    "image_small": None,
    "description": "d" * 200,
}
READ = get("/api/v1/artists", answer={"artists": page(1, 1, ROW, total=1)["tracks"]})
ARTIST = f"/api/v1/artists/{LARGE}"


def patch(**body: Any) -> Sent:
    return Sent("PATCH", ARTIST, body=body)


def test_a_client_without_requests_has_nothing_tested() -> None:
    assert card_of().report().score == 0
    assert passed() == set()
    assert failed() == {}


def test_only_a_request_before_the_time_of_a_refusal_came_too_early() -> None:
    assert failed(LIMITED, get(TRACKS, after=1)) == failed(LIMITED, get(ALBUMS, after=0.01)) == {"retry-after": 1}
    assert passed(LIMITED, get(TRACKS, after=2)) >= {"retry-after"}
    assert passed(LIMITED, get(TRACKS, after=0.2, advanced=2)) >= {"retry-after"}
    assert passed(LIMITED, get(TRACKS, after=2, advanced=-100)) >= {"retry-after"}
    assert failed(LIMITED, get(TRACKS, after=0.05)) == {}  # it was on its way
    assert failed(LIMITED, get(TRACKS, after=1, token=2)) == {}
    assert failed(OVERLOADED, get(TRACKS, after=0.5)) == {}  # another endpoint
    assert failed(OVERLOADED, get(f"{ALBUMS}?page=2", after=0.5)) == {"retry-after": 1}


def test_a_list_is_read_to_its_end_by_those_who_have_begun() -> None:
    first, second, third = (get(f"{TRACKS}?page={number}", answer=page(number, 3)) for number in (1, 2, 3))
    other = get(ALBUMS)
    assert failed(first, other) == failed(first, second) == {}
    assert failed(first, second, other) == failed(first, third, other) == {"paging": 1}
    assert passed(first, third, other, second, other) >= {"paging"}
    broken = replace(third, ended_by="demo")
    assert failed(first, second, broken, other) == {"paging": 1}
    assert passed(first, second, broken, third, other) >= {"paging"}
    assert passed(first, second, replace(third, status=304), other) >= {"paging"}
    longer = get(first.target, answer=page(1, 4))
    assert failed(first, second, third, longer, other) == {}  # who has read it all may look for news
    assert failed(first, second, third, first, second, other) == {"paging": 1}


def test_a_post_without_a_response_is_repeated_only_if_that_is_harmless() -> None:
    body = {"name": "Sunday"}
    assert failed(lost("POST", PLAYLISTS, body), post(PLAYLISTS, body)) == {"retries": 1}
    assert failed(lost("POST", PLAYLISTS, body), *[post(PLAYLISTS, body)] * 2) == {"retries": 1}  # the second arrived
    assert passed(lost("POST", PLAYLISTS, body), get(PLAYLISTS), post(PLAYLISTS, body)) >= {"retries"}
    assert failed(lost("POST", PLAYLISTS, body), post(PLAYLISTS, {"name": "Monday"})) == {}
    assert failed(lost("POST", PLAYLISTS, body), post(PLAYLISTS, body, after=MOMENT / 2)) == {}  # it was on its way
    assert failed(Sent("POST", PLAYLISTS, 503, body), post(PLAYLISTS, body)) == {}  # nothing was done
    assert failed(Sent("POST", PLAYLISTS, 500, body), post(PLAYLISTS, body)) == {"retries": 1}
    like = f"{TRACKS}/7/like"
    assert failed(lost("POST", like, None), post(like, None)) == {}
    added = f"{PLAYLISTS}/7/tracks/add"
    assert failed(lost("POST", added, {"ids": [1]}), post(added, {"ids": [1]})) == {"retries": 1}
    for seen, violations in ((f"{PLAYLISTS}/7/tracks", 0), (f"{PLAYLISTS}/7", 0), (f"{PLAYLISTS}/8", 1), (ALBUMS, 1)):
        found = failed(lost("POST", added, {"ids": [1]}), get(seen), post(added, {"ids": [1]}))
        assert found.get("retries", 0) == violations, seen
    assert failed(lost("POST", PLAYS, plays(None)), post(PLAYS, plays(None))) == {"retries": 1}
    assert passed(lost("POST", PLAYS, plays("a")), post(PLAYS, plays("a"))) >= {"retries", "plays"}


def test_a_post_is_repeated_with_the_same_key_where_keys_count() -> None:
    body, one, another = {"name": "Sunday"}, {"Idempotency-Key": "k1"}, {"Idempotency-Key": "k2"}
    for path, sent in ((PLAYLISTS, body), (PLAYS, plays(None))):
        first = lost("POST", path, sent, headers=one)
        assert passed(first, post(path, sent, headers=one)) >= {"retries"}
        assert failed(first, post(path, sent, headers=another))["retries"] == 1
        assert failed(first, post(path, sent))["retries"] == 1
        assert failed(lost("POST", path, sent), post(path, sent, headers=one))["retries"] == 1
    added, ids = f"{PLAYLISTS}/7/tracks/add", {"ids": [1]}
    assert failed(lost("POST", added, ids, headers=one), post(added, ids, headers=one)) == {"retries": 1}


def test_a_response_is_got_in_vain_only_if_it_is_the_same() -> None:
    same, other = (get(ALBUMS, returned={"ETag": tag}) for tag in ('"a"', '"b"'))
    assert failed(same, same) == failed(same, other, same, other) == {}
    assert failed(same, same, same) == {"etags": 1}
    at_once = replace(same, after=MOMENT / 2)
    assert failed(same, at_once, same, at_once) == {}
    assert passed(same, replace(same, status=304)) >= {"etags"}
    assert passed(same, replace(other, headers={"If-None-Match": '"a"'})) >= {"etags"}
    assert failed(replace(same, ended_by="demo"), same, same) == {}


def test_fields_are_evaluated_by_the_document() -> None:
    assert passed(get(f"{ALBUMS}?page=1&per_page=2")) >= {"fields"}
    assert failed(get(f"{ALBUMS}?perPage=2")) == failed(get(f"{ALBUMS}?limit=2")) == {"fields": 1}
    assert failed(get(f"{ALBUMS}?limit=2"), get(f"{ALBUMS}?limit=3")) == {"fields": 1}  # the same once
    assert failed(post(PLAYS, {"plays": [{"track_id": 7, "client_id": "a", "when": 1}]})) == {"fields": 1}
    channels = {"selections": [{"notif_id": "new_follower", "channels": {"email": True}}]}
    assert failed(Sent("PUT", "/api/v1/notifications/me/subscriptions", body=channels)) == {}


def test_a_token_is_dead_after_a_401_that_says_so() -> None:
    assert passed(REFUSED) >= {"dead-token"}
    assert failed(REFUSED, get(TRACKS)) == {"dead-token": 1}
    assert failed(REFUSED, get(TRACKS, after=0.05), get(TRACKS, token=2)) == {}
    assert failed(REFUSED, get(TRACKS, last_four="efgh")) == {}  # the same token with a new value
    unknown = {"WWW-Authenticate": 'Bearer error="invalid_token", error_description="unknown"'}
    assert failed(replace(REFUSED, returned=unknown), get(TRACKS)) == {}


def test_a_play_is_lost_once_its_client_has_gone_on() -> None:
    loss, other = lost("POST", PLAYS, plays("a", "b")), get(ALBUMS)
    assert failed(loss, other, other) == {}
    assert failed(loss, Sent("POST", PLAYS, 503, plays("a", "b")), other, other) == {"plays": 2}
    assert failed(loss, lost("POST", PLAYS, plays("c", "d"))) == {"plays": 2}
    assert failed(loss, other, other, other) == {"plays": 2}
    assert failed(loss, other, other, other, post(PLAYS, plays("a"))) == {"plays": 1}
    assert passed(loss, other, other, other, post(PLAYS, plays("a", "b"))) >= {"plays"}
    assert passed(loss, loss, other, other, other, post(PLAYS, plays("a", "b"))) >= {"plays"}
    assert passed(loss, post(PLAYS, plays("a", "b"), token=2), other, other, other) >= {"plays"}
    same = post(PLAYS, plays("a", "b"), token=2, account=2)  # the ids of another account are of other plays
    assert failed(loss, same, other, other, other) == {"plays": 2}
    assert failed(loss, post(PLAYS, plays("c", "d"))) == failed(loss, post(PLAYS, plays(None, None))) == {"plays": 2}
    assert failed(loss, post(PLAYS, plays("a", "b")), post(PLAYS, plays("c", "d"))) == {}  # it had a response
    assert failed(loss, post(PLAYS, plays("c", "d"), token=2)) == {}  # another client
    for status, violations in ((422, 0), (403, 0), (503, 2), (429, 2), (401, 2)):
        again = Sent("POST", PLAYS, status, plays("a", "b"))
        assert failed(loss, again, other, other, other) == ({"plays": violations} if violations else {}), status
    assert failed(loss, post(PLAYS, plays("c", "d"), after=MOMENT / 2)) == {}  # it was on its way
    at_once = plays("a")["plays"] + plays("b")["plays"]  # two listeners without a name
    assert failed(lost("POST", PLAYS, {"plays": at_once}), post(PLAYS, {"plays": at_once})) == {}


def test_values_of_the_edge_world_are_kept_as_they_were_given() -> None:
    row = get(ARTIST, answer={"artist": ROW})
    assert passed(READ, row, patch(name=ROW["name"], description=ROW["description"], image_small=None)) >= {"edge"}
    for damaged in (
        get(f"/api/v1/artists/{LARGE % 2**32}"),
        get(f"/api/v1/artists/{LARGE % 2**32 - 2**32}"),
        get("/api/v1/artists/2147483647"),
        get("/api/v1/artists/1.37e%2B11".replace("%2B", "+")),
        get(f"{ALBUMS}/undefined"),
        patch(name="Caf\u00e9 \U0001d11e"),
        patch(name="Cafe\u0301 ?"),
        patch(name="Cafe\u0301 \ufffd"),
        patch(name=f"{ROW['name']}\ufffd"),
        patch(description="d" * 150),
        patch(image_small="null"),
        patch(name=7),
        post(TRACKS, {"name": "n", "duration": 1, "artists": [LARGE % 2**32]}),
        replace(patch(name=""), body=b'{"name": "\\ud834"}', status=400),
        replace(patch(name=""), body='{"name": "\xe9"}'.encode("latin-1"), status=400),
        get(f"{TRACKS}?page=2", answer=page(2, 1)),
    ):
        assert failed(READ, damaged) == {"edge": 1}, damaged
        assert failed(READ, damaged, world="standard") == {}


def test_values_that_were_not_given_are_not_evaluated() -> None:
    for new in (
        get("/api/v1/artists/4294967295"),
        get("/api/v1/artists/999"),
        patch(name="A new name"),
        patch(name="A new name\ufffd"),
        patch(name="Cafe\u0301"),
        patch(description="d" * 20 + " and more"),
        patch(description=None),
        get(f"{TRACKS}?page=2", answer=page(2, 1, total=7)),
        get(f"{TRACKS}?page=9", answer=page(9, 1)),
    ):
        assert failed(replace(READ, token=2), new) == {}
    twins = [ROW, ROW | {"id": LARGE % 2**32, "name": "Caf\u00e9 \U0001d11e"}]
    both = replace(READ, answer={"artists": page(1, 1, *twins, total=2)["tracks"]})
    assert failed(both, get(f"/api/v1/artists/{LARGE % 2**32}"), patch(name=twins[1]["name"])) == {}
    assert failed(READ, patch(name="A new name")) == failed(READ, patch(name=None)) == {}


def test_a_token_that_can_only_read_may_try_once() -> None:
    denied = Sent("POST", PLAYLISTS, 403, {"name": "Sunday"}, scope="read")
    assert failed(denied, get(PLAYLISTS, scope="read")) == {}
    assert failed(denied, denied) == {"edge": 1}


def test_a_restored_snapshot_ends_what_clients_have_to_do_and_keeps_their_faults() -> None:
    card = card_of(LIMITED, lost("POST", PLAYS, plays("a")), get(ALBUMS), get(ALBUMS), get(ALBUMS))
    before = {result.point.name for result in card.report().results if result.state is State.FAILED}
    card.forget()
    after = {result.point.name for result in card.report().results if result.state is State.FAILED}
    assert (before, after) == ({"retry-after", "plays"}, {"retry-after"})
    card.restarted()
    assert card.report().requests == card.report().score == 0


def test_the_first_violations_are_kept_and_all_are_counted() -> None:
    early = [LIMITED, get(TRACKS)] * (MOST_SHOWN + 3)
    result = card_of(*early).report().results[0]
    assert (result.number, len(result.violations)) == (MOST_SHOWN + 3, MOST_SHOWN)


BAD = (
    *(READ, patch(name="Caf\u00e9 \U0001d11e"), get(f"/api/v1/artists/{LARGE % 2**32}", status=404)),
    *(get(f"{TRACKS}?page={number}", answer=page(number, 3)) for number in (1, 2)),
    *(lost("POST", PLAYLISTS, {"name": "Sunday"}), post(PLAYLISTS, {"name": "Sunday"})),
    *[get(ALBUMS, returned={"ETag": '"a"'})] * 3,
    get(f"{ALBUMS}?limit=2"),
    lost("POST", PLAYS, plays("a", "b")),
    get(f"{ALBUMS}/7", status=429, returned={"Retry-After": "1000", "RateLimit": '"token";r=0;t=1000'}),
    *(get(f"{ALBUMS}/8"), get(f"{ALBUMS}/9"), REFUSED, get(f"{ALBUMS}/9")),
)
GOOD = (
    *(READ, get(ARTIST, answer={"artist": ROW}), patch(name=ROW["name"], image_small=None)),
    *(get(f"{TRACKS}?page={number}", answer=page(number, 3)) for number in (1, 2, 3)),
    *(lost("POST", PLAYLISTS, {"name": "Sunday"}), get(PLAYLISTS), post(PLAYLISTS, {"name": "Sunday"})),
    *(get(ALBUMS, returned={"ETag": '"a"'}), get(ALBUMS, status=304, returned={"ETag": '"a"'})),
    *(lost("POST", PLAYS, plays("x", "y", minute=30)), post(PLAYS, plays("x", "y", minute=30))),
    *(get(f"{ALBUMS}/7"), REFUSED),
)


def faults(requests: Sequence[Sent], token: int) -> list[tuple[str, str]]:
    """Return the violations of a client by point and text."""
    results = card_of(*requests).report().results
    return [
        (result.point.name, violation.text)
        for result in results
        for violation in result.violations
        if violation.client == f"token {token} (t)"
    ]


@pytest.mark.slow
@given(st.permutations([1] * len(BAD) + [2] * len(GOOD)))
def test_a_client_is_evaluated_as_if_it_were_alone(order: list[int]) -> None:
    waiting = {1: iter(BAD), 2: iter(GOOD)}
    mixed = [replace(next(waiting[token]), token=token) for token in order]
    assert faults(mixed, 1) == faults(BAD, 1)
    assert {point for point, _ in faults(BAD, 1)} == {result.point.name for result in card_of().report().results}
    assert faults(mixed, 2) == faults(GOOD, 1) == []


KEYS = ("plays", "track_id", "client_id", "id", "ids", "model_type", "name", "data", "last_page")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
NUMBERS = st.integers(1, 5)
ROWS = st.fixed_dictionaries(
    {"id": st.integers(1, 2**53), "model_type": st.sampled_from(["track", "album"]), "name": st.text() | st.none()}
)
PAGES = st.fixed_dictionaries(
    {
        "current_page": NUMBERS,
        "last_page": NUMBERS,
        "per_page": NUMBERS,
        "total": st.integers(0, 20),
        "data": st.lists(ROWS),
    }
)
REQUESTS = st.builds(
    Sent,
    method=st.just("POST"),
    target=st.sampled_from([PLAYS, PLAYLISTS, f"{PLAYLISTS}/%F0/tracks/add?a&a=%FF&=", TRACKS]),
    status=st.sampled_from([None, 201, 200, 400, 429, 500]),
    body=JSON | st.binary(max_size=9),
    answer=st.none() | st.fixed_dictionaries({"track": ROWS}) | st.fixed_dictionaries({"pagination": PAGES}),
    returned=st.just({"Retry-After": "1e9", "RateLimit": "x", "ETag": ""}),
)


@pytest.mark.slow
@given(st.lists(REQUESTS | REQUESTS.map(lambda sent: replace(sent, method="GET", target=TRACKS)), max_size=5))
def test_any_request_can_be_evaluated(requests: list[Sent]) -> None:
    assert card_of(*requests).report().requests == len(requests)
