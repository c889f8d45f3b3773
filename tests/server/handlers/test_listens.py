"""Listens that players report as they do to ListenBrainz: tokens, refusals, plays, and what waits for its track."""

import json
import random
import string
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from io import BytesIO
from typing import Any

import pytest

from musicsvc.clock import DAY, SECOND, MovableClock
from musicsvc.config import Limits, Plays, Server, Settings
from musicsvc.server.schemas.listens import EARLIEST
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.catalog.identifiers import as_isrc
from musicsvc.store.engine.store import Store
from musicsvc.store.listens import refusals, resolving
from musicsvc.store.models import Album, Artist, Play, PlayProgress, Track, TrackArtist
from musicsvc.store.plays.reported import own_plays
from tests.conftest import NOW
from tests.support.serving import Answer, Client, person, running
from tests.support.waiting import until

HEARD = NOW // SECOND - 600
MBID = "b1a9c0e9-d987-4042-ae91-78d6a3267d69"
ISRC = "USRC17607839"
KNOWN = ["Ann Example", "Morning"]


def listen(artist: str = KNOWN[0], title: str = KNOWN[1], at: Any = HEARD, **more: Any) -> dict[str, Any]:
    about = {name: more.pop(name) for name in [*more] if name not in {"release_name", "top"}}
    metadata = {"artist_name": artist, "track_name": title, "additional_info": about} | more
    return {"track_metadata": metadata} | ({} if at is None else {"listened_at": at})


def body(*listens: Any, kind: str = "import") -> dict[str, Any]:
    return {"listen_type": kind, "payload": [*listens]}


def make_track(store: Store, title: str, *artists: str, **more: Any) -> int:
    def make() -> int:
        track = Track.create(name=title, duration=1000, created_at=NOW, **more)
        for place, name in enumerate(artists):
            artist = Artist.select().where(Artist.name == name).first() or Artist.create(name=name, created_at=NOW)
            TrackArtist.create(track=track, artist=artist, position=place)
        return int(track.id)

    return store.write(make).result()


def plays(store: Store) -> list[tuple[int, int, str | None]]:
    """Return track, time (Unix seconds) and player of all plays, in order of time."""
    rows = Play.select(Play.track, Play.played_at, Play.platform).order_by(Play.played_at)
    found: list[Any] = store.read(lambda: list(rows.tuples())).result()
    return [(row[0], row[1] // SECOND, row[2]) for row in found]


class Player:
    """A player with a listening token, and its account."""

    def __init__(self, client: Client, store: Store, clock: MovableClock, name: str = "ann") -> None:
        self.id, access = person(store, clock, f"{name}@label.test")
        self.ask = client.holding(access)
        user = store.read(lambda: users.get(self.id)).result()
        made = store.write(lambda: tokens.create(user, "player", scope="listen", now=clock.now())).result()
        self.token_id, self.token = made[0].id, made[1]
        self.client = client.holding(None)

    async def send(self, sent: Any, scheme: str = "Token", **more: Any) -> Answer:
        headers = {"Authorization": f"{scheme} {self.token}"}
        data = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        return await self.client("POST", "/1/submit-listens", data=data, headers=headers, **more)

    async def valid(self) -> Any:
        return await self.client.get("/1/validate-token", headers={"Authorization": f"Token {self.token}"})

    async def pending(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.ask.get("users/me/pending-listens")).json["pagination"]["data"]
        return rows


@pytest.fixture
async def player(anonymous: Client, store: Store, clock: MovableClock) -> Player:
    return Player(anonymous, store, clock)


async def test_a_listening_token_opens_two_paths_and_no_other_token_does(player: Player, store: Store) -> None:
    for scheme in ("Token", "token", "TOKEN", "Bearer"):
        answer = await player.client.get("/1/validate-token", headers={"Authorization": f"{scheme} {player.token}"})
        named = {"code": 200, "message": "Token valid.", "valid": True, "user_name": "ann"}
        assert (answer.status, answer.json) == (200, named), scheme
    assert (await player.ask.get("/1/validate-token")).json["valid"] is False
    refused = await player.ask.post("/1/submit-listens", body(listen()))
    hint = "Players need a valid listening token; tokens of other scopes are refused here."
    assert (refused.status, refused.json) == (401, {"code": 401, "error": f"Unauthenticated. {hint}"})
    for path in ("users/me", "albums", "artists/1"):
        assert (await player.client.holding(player.token).get(path)).status == 401, path
    none = await player.client.get("/1/validate-token")
    assert (none.status, none.json["code"], none.json["error"][:23]) == (400, 400, "Send a listening token,")
    in_query = await player.client.get(f"/1/validate-token?token={player.token}")
    assert in_query.status == 400
    with_body = await player.client("GET", "//1/validate-token", {}, headers={"Authorization": f"Token {player.token}"})
    assert (with_body.status, with_body.json["valid"]) == (200, True)
    refused = await player.client.holding("f" * 36).post("//1/submit-listens", body(listen()))
    assert (refused.status, refused.json["error"]) == (401, f"Unauthenticated. {hint}")
    store.write(lambda: tokens.revoke(player.token_id, "lost", now=NOW)).result()
    assert ((await player.valid()).json["valid"], (await player.send(body(listen()))).status) == (False, 401)


async def test_an_account_without_api_access_is_told_so(player: Player, store: Store) -> None:
    store.write(lambda: api_access.revoke(users.get(player.id), now=NOW)).result()
    answer = (await player.valid()).json
    assert (answer["code"], answer["message"][:22], answer["valid"]) == (200, "Token invalid. Players", False)
    refused = await player.send(body(listen()))
    assert (refused.status, refused.json["code"], [*refused.json]) == (403, 403, ["code", "error"])


async def test_a_listening_token_ends_90_days_after_its_last_use(
    player: Player, store: Store, clock: MovableClock
) -> None:
    def used() -> bool:
        return store.read(lambda: tokens.get(player.token_id).last_used_at == clock.now()).result()

    for days in (60, 60, 89):
        clock.advance(days * DAY)
        assert (await player.valid()).json["valid"] is True
        await until(used)
    async with running(store, clock) as other:  # another process, or one that was started again
        clock.advance(89 * DAY)
        player.client = other
        assert (await player.valid()).json["valid"] is True
        await until(used)
        clock.advance(90 * DAY)
        assert (await player.valid()).json["valid"] is False


async def test_listens_are_plays_of_the_tracks_that_they_name(player: Player, store: Store) -> None:
    named = make_track(store, "Morning", "Ann Example")
    coded = make_track(store, "Evening", "Ben Example", isrc=as_isrc(ISRC))
    brainz = make_track(store, "Night", "Cleo Example", external_id=MBID)
    sent = [
        listen("ann example", " morning ", HEARD + 0.9, media_player="Navi drome!", submission_client="other"),
        listen("whoever", "whatever", HEARD + 60, isrc="US-RC1-76-07839", submission_client="x" * 40),
        listen("whoever", "whatever", HEARD + 120, recording_mbid=MBID.upper(), isrc="none", duration_ms=10**9),
    ]
    assert (await player.send(body(*sent))).json == {"status": "ok"}
    assert (await player.send(body(*sent))).json == {"status": "ok"}
    expected = [(named, HEARD, "navi-drome-"), (coded, HEARD + 60, "x" * 32), (brainz, HEARD + 120, None)]
    assert plays(store) == expected
    assert store.read(lambda: [row.duration_ms for row in Play.select()]).result() == [None] * 3
    assert (await player.ask.get(f"tracks/{named}")).json["track"]["plays"] == 1
    assert await player.pending() == []


async def test_a_list_of_artists_divides_a_text_that_joins_them_by_commas(player: Player, store: Store) -> None:
    both = make_track(store, "Morning", "Ann Example", "Ben, the Example")
    text, names = "Ann Example, Ben, the Example", ["Ann Example", "Ben, the Example"]
    lists: tuple[Any, ...] = names, None, "Ann Example", [*names, None], [{}], names[:1]
    await player.send(body(*(listen(text, at=HEARD + 60 * at, artist_names=each) for at, each in enumerate(lists))))
    assert [row[0] for row in plays(store)] == [both]
    assert [(each["artist"], each["listens"]) for each in await player.pending()] == [(text, 5)]


async def test_the_release_decides_between_several_and_else_the_oldest_track(player: Player, store: Store) -> None:
    albums = [store.write(partial(Album.create, name=name, created_at=NOW)).result() for name in ("One", "Two")]
    first, second = (make_track(store, "Morning", "Ann Example", album=album.id) for album in albums)
    await player.send(body(listen(release_name="two"), listen(at=HEARD + 60), listen(at=HEARD + 120, release_name="?")))
    assert [row[0] for row in plays(store)] == [second, first, first]


async def test_what_plays_now_is_checked_and_stored_nowhere(player: Player, store: Store) -> None:
    make_track(store, "Morning", "Ann Example")
    assert (await player.send(body(listen(at=None), kind="playing_now"))).json == {"status": "ok"}
    without = listen(at=None) | {"listened_at": None}
    assert (await player.send(body(without, kind="playing_now"))).json == {"status": "ok"}
    assert (await player.send(body(listen(), kind="playing_now"))).status == 400
    assert (await player.send(body(listen("", at=None), kind="playing_now"))).status == 400
    assert (plays(store), await player.pending()) == ([], [])


async def test_limits_hold_and_their_headers_are_those_that_players_read(
    player: Player, store: Store, clock: MovableClock
) -> None:
    async with running(store, clock, Settings(limits=Limits(local=True, token="3/minute"))) as client:
        player.client = client
        answers = [await player.send(body(listen(at=HEARD + 60 * place))) for place in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
        for answer in answers:
            assert answer.headers["X-RateLimit-Reset-In"] == answer.headers["X-RateLimit-Reset"]
        assert answers[3].json["code"] == 429


MALFORMED = {
    "listen_type": {"listen_type": "maybe", "payload": [listen()]},
    "payload": {"listen_type": "import", "payload": []},
    "payload: Must have exactly one": body(listen(), listen(at=HEARD + 60), kind="single"),
    "payload: Must have at most 1,000": body(*[{"a": 1}] * 1001),
    "payload.1.track_metadata.artist_name: Must not be empty": body(listen(), listen("  ")),
    "payload.1.track_metadata.track_name: Must be a string": body(listen(), listen(title=7)),  # type: ignore[arg-type]
    "payload.1.track_metadata.track_name: Must not contain NUL": body(listen(), listen(title="a\0b")),
    "payload.1.listened_at: Must be Unix seconds": body(listen(), listen(at=EARLIEST - 1)),
    "payload.1.listened_at: This field is required": body(listen(), listen(at=None)),
    "payload.1.listened_at: Is more than 5 minutes": body(listen(), listen(at=NOW // SECOND + 301)),
    "payload.1: Has more than 10,240 bytes": body(listen(), listen(title="x" * 10_240)),
    "payload.1: Has more than 100 values": body(listen(), listen(tags=["x"] * 100)),
    "The body is not a JSON object": [1],
    "The body begins with a byte order mark": b"\xef\xbb\xbf{}",
    "The body has more than 100 members": body(listen()) | {f"more{place}": 1 for place in range(99)},
}


@pytest.mark.parametrize("message", MALFORMED)
async def test_one_malformed_listen_refuses_all_and_is_named(player: Player, store: Store, message: str) -> None:
    answer = await player.send(MALFORMED[message])
    assert (answer.status, answer.json["code"]) == (400, 400)
    assert answer.json["error"].startswith(message)
    assert (plays(store), await player.pending()) == ([], [])


@pytest.mark.parametrize(
    "sent",
    [b"", b"{", b"[]", b"nonsense", b'{"listen_type": "import", "payload": [1', b'{"payload": [}', b"\xff",
     b'{"listen_type": "single", "payload": [], "payload": []}', b'{"a": ' + b"[" * 5000,
     b'{"listen_type": "import", "payload": [' + b"[" * 9000 + b"]" * 9000 + b"]}",
     b'{"listen_type": "import", "payload": [{"track_metadata": {"artist_name": "\\ud800"}}]}'],
)  # fmt: skip
async def test_what_is_no_submission_is_refused_in_one_sentence(player: Player, sent: bytes) -> None:
    answer = await player.send(sent)
    assert (answer.status, [*answer.json]) == (400, ["code", "error"])


@pytest.mark.slow
async def test_a_body_has_at_most_10_mib_of_any_content_type(player: Player, store: Store) -> None:
    make_track(store, "Morning", "Ann Example")
    some = [listen(at=HEARD - 60 * place, comment="y" * 9000) for place in range(1000)]
    for kind in ("application/json", "text/plain", ""):
        headers = {"Authorization": f"Token {player.token}", "Content-Type": kind}
        sent = json.dumps(body(*some)).encode()
        answer = await player.client("POST", "/1/submit-listens", data=BytesIO(sent), headers=headers)
        assert (len(sent) > 9_000_000, answer.status, answer.body) == (True, 200, b'{"status":"ok"}')
    by_day = Counter(each["listened_at"] // 86_400 for each in some)
    assert len(plays(store)) == sum(min(own_plays.DAILY, count) for count in by_day.values()) == 889
    headers = {"Authorization": f"Token {player.token}"}
    large = BytesIO(b" " * (10 * 1024 * 1024 + 1))
    answer = await player.client("POST", "/1/submit-listens", data=large, headers=headers)
    assert (answer.status, answer.json["code"]) == (413, 413)


async def test_own_plays_have_their_rule_and_what_it_refuses_is_counted(
    player: Player, store: Store, clock: MovableClock
) -> None:
    make_track(store, "Morning", "Ann Example")
    day = HEARD - HEARD % 86_400 - 86_400
    some = [listen(at=day + 40 * place) for place in range(own_plays.DAILY)]
    old = NOW // SECOND - 14 * 86_400 - 1
    more = [listen("Ben", "Other", day + 40 * 9 + 1), listen(at=day + 30_000), listen(at=old), listen(at=old - 60)]
    assert (await player.send(body(*some, *more))).json == {"status": "ok"}
    assert (len(plays(store)), await player.pending()) == (own_plays.DAILY, [])
    counted = store.read(lambda: refusals.of_account(player.id)).result()
    assert [row[:2] for row in counted] == [("old", 2), ("day_full", 1), ("half_minute", 1)]
    async with running(store, clock, Settings(plays=Plays(own=False))) as closed:
        player.client = closed
        assert (await player.send(body(listen(at=HEARD + 60)))).json == {"status": "ok"}
    counted = store.read(lambda: refusals.of_account(player.id)).result()
    assert ("off", 1) in [row[:2] for row in counted]


async def test_what_is_missing_waits_and_counts_once_when_its_track_appears(player: Player, store: Store) -> None:
    sent = [listen(at=HEARD), listen("ANN example", at=HEARD - 60), listen(title="Other", at=HEARD - 120)]
    for _ in range(2):
        assert (await player.send(body(*sent))).json == {"status": "ok"}
    entries = await player.pending()
    assert [(e["artist"], e["track"], e["listens"]) for e in entries] == [
        ("ANN example", "Morning", 2),
        (KNOWN[0], "Other", 1),
    ]
    assert plays(store) == []
    track = make_track(store, "Morning", "Ann Example")
    await until(lambda: len(plays(store)) == 2)
    assert [row[:2] for row in plays(store)] == [(track, HEARD - 60), (track, HEARD)]
    await player.send(body(*sent))
    assert len(plays(store)) == 2
    await until(lambda: not store.read(resolving.is_due).result())
    own = (await player.ask.get(f"tracks/{track}")).json["track"]["plays"]
    assert (own, [e["track"] for e in await player.pending()]) == (2, ["Other"])


async def test_long_names_and_ids_wait_and_match_nothing(player: Player, store: Store) -> None:
    make_track(store, "Morning", "Ann Example")
    long = listen(
        "Ann " * 900, "Morning " * 90, recording_mbid="".join(random.Random(1).choices(string.hexdigits, k=4000))
    )
    assert (await player.send(body(long, listen(at=HEARD + 60)))).json == {"status": "ok"}
    assert [row[1] for row in plays(store)] == [HEARD + 60]
    assert [(e["artist"], e["track"]) for e in await player.pending()] == [
        (("Ann " * 900).strip(), ("Morning " * 90).strip())
    ]


async def test_a_pending_listen_holds_its_half_minute_and_its_place(player: Player, store: Store) -> None:
    make_track(store, "Evening", "Ann Example")
    at = HEARD - HEARD % 30
    await player.send(body(listen(at=at)))
    await player.send(body(listen(title="Evening", at=at + 9), listen(title="Evening", at=at + 39)))
    assert [row[1] for row in plays(store)] == [at + 39]
    reported = await player.ask.post("plays", {"plays": [{"track_id": 1, "played_at": at + 12}]})
    assert reported.json["refused"] == [{"index": 0, "reason": own_plays.SECOND_PLAY}]


async def test_an_account_names_dismisses_and_sees_its_own_entries_only(
    player: Player, store: Store, clock: MovableClock
) -> None:
    other = Player(player.client, store, clock, "ben")
    track = make_track(store, "Evening", "Cleo Example")
    await player.send(body(listen(at=HEARD), listen(at=HEARD - 60), listen(title="Other", at=HEARD - 120)))
    await other.send(body(listen(at=HEARD - 180)))
    first, second = await player.pending()
    path = f"users/me/pending-listens/{first['id']}"
    assert (await other.ask.post(path, {"track_id": track})).status == 404
    assert (await other.ask.delete(path)).status == 404
    assert (await player.ask.post(path, {"track_id": 9999})).status == 422
    assert (await player.ask.post(path, {"track_id": track})).status == 200
    assert [row[:2] for row in plays(store)] == [(track, HEARD - 60), (track, HEARD)]
    assert (await player.ask.post(path, {"track_id": track})).status == 404
    assert (await player.ask.delete(f"users/me/pending-listens/{second['id']}")).status == 200
    assert (await player.pending(), len(await other.pending())) == ([], 1)
    assert (await other.ask.delete("users/me/pending-listens")).status == 200
    assert await other.pending() == []


@pytest.fixture
async def below(store: Store, clock: MovableClock) -> AsyncIterator[Client]:
    async with running(store, clock, Settings(server=Server(base_path="/music"))) as client:
        yield client


async def test_the_paths_are_below_the_base_path(below: Client, store: Store, clock: MovableClock) -> None:
    player = Player(below, store, clock)
    assert (await player.valid()).json["valid"] is True
    outside = await below.get(f"{below.root.removesuffix('/music')}/1/validate-token")
    assert outside.status == 404


@pytest.mark.on_both
async def test_a_listen_of_a_day_whose_plays_were_deleted_is_dropped_and_counted(player: Player, store: Store) -> None:
    await player.send(body(listen(at=HEARD - 10 * 86_400)))
    store.write(lambda: PlayProgress.update(kept_from=(NOW - 5 * DAY) // DAY).execute()).result()
    make_track(store, "Morning", "Ann Example")
    await until(lambda: store.read(lambda: refusals.of_account(player.id)).result())
    assert (plays(store), await player.pending()) == ([], [])


async def test_a_listen_waits_in_the_next_response_after_it_was_received(player: Player) -> None:
    for number in range(1, 4):
        assert (await player.send(body(listen("Nobody", f"Song {number}", HEARD - 60 * number)))).json == {
            "status": "ok"
        }
        assert len(await player.pending()) == number
