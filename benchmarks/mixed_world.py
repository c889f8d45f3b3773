"""The data and the requests of the mixed load: 50 accounts over a synthetic catalog, with a Zipf distribution.

The same seed gives the same requests. Every account manages a fiftieth of the artists, and has a token and five
playlists of twenty tracks. The 200 most popular tracks have twelve comments each, and all tracks share 30,000 plays of
the last 60 days; fewer in a small catalog.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from musicsvc.clock import DAY, Clock, isoformat
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import comments
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Token, Track, TrackArtist, User
from musicsvc.store.playlists import playlists
from musicsvc.store.plays import ingest
from musicsvc.store.seeding import synthetic

ACCOUNTS, PLAYLISTS, PLAYLIST_TRACKS = 50, 5, 20
COMMENTED, COMMENTS = 200, 12
PLAYS, PLAYS_AT_ONCE, LISTENERS, DAYS = 30_000, 1_000, 5_000, 60
WRITES = 0.02
API, INSIGHTS = "/api/v1", "/api/v1/producer-intelligence/insights"


class Wanted(NamedTuple):
    """A request of the mix; `body` is JSON, or empty for a read."""

    method: str
    path: str
    body: bytes = b""


@dataclass(frozen=True)
class Popular:
    """The ids of one kind of thing, the most popular first."""

    ids: Sequence[int]
    weights: Sequence[float]

    def draw(self, chance: random.Random) -> int:
        """Return an id with a Zipf distribution."""
        return chance.choices(self.ids, cum_weights=self.weights)[0]


@dataclass(frozen=True)
class Account:
    """A caller: a token, the ids of own playlists, and the managed artists and their tracks."""

    token: str
    playlists: Sequence[int]
    artists: Popular
    tracks: Popular


@dataclass(frozen=True)
class World:
    """Everything that the mix asks for."""

    albums: Popular
    tracks: Popular
    artists: Popular
    pages: Popular
    accounts: Sequence[Account]


def fill(store: Store, albums: int) -> World:
    """Create a catalog with about this number of albums, the accounts and what belongs to them."""
    synthetic.create(store, albums / synthetic.ALBUMS, 1, on_progress=lambda *_: None)
    return store.write(_people).result()


def popular(ids: Sequence[int], seed: str) -> Popular:
    """Return the ids in a random order of popularity."""
    shuffled = random.Random(seed).sample(ids, len(ids))  # noqa: S311 - a load, no secret
    return _ranked(shuffled)


def _ranked(ids: Sequence[int]) -> Popular:
    return Popular(ids, list(accumulate(1 / rank for rank in range(1, len(ids) + 1))))


def _people() -> World:
    chance, now = random.Random("people"), Clock().now()  # noqa: S311 - a load, no secret
    tracks = popular(_ids(Track.select(Track.id).order_by(Track.id)), "tracks")
    artist_ids = _ids(Artist.select(Artist.id).order_by(Artist.id))
    album_ids = _ids(Album.select(Album.id).order_by(Album.id))
    accounts, callers = [], []
    for number in range(ACCOUNTS):
        user = users.create(f"listener{number}@mix.test", api_access=True, now=now)
        api_access.grant(user, plays=True, now=now)
        token, value = tokens.create(user, "mix", now=now)
        caller = _caller(user, token)
        callers.append(caller)
        managed = artist_ids[number::ACCOUNTS]
        Artist.update(manager=user.id).where(Artist.id.in_(managed)).execute()
        own = TrackArtist.select(TrackArtist.track).where(TrackArtist.artist.in_(managed)).distinct()
        lists = [_playlist(tracks, caller, now, chance) for _ in range(PLAYLISTS)]
        own_tracks = popular(_ids(own.order_by(TrackArtist.track)), "own")
        accounts.append(Account(value, lists, popular(managed, "managed"), own_tracks))
    _comment(tracks, callers, now, chance)
    _play(tracks, callers[0], now, chance)
    pages = _ranked(range(1, max(2, len(album_ids) // 20)))
    return World(popular(album_ids, "albums"), tracks, popular(artist_ids, "artists"), pages, accounts)


def _ids(query: Any) -> list[int]:
    return [values[0] for values in query.tuples().iterator()]


def _caller(user: User, token: Token) -> Identity:
    return tokens.Identity(
        user_id=user.id,
        display_name=user.display_name,
        avatar=user.avatar,
        admin=False,
        api_access=True,
        reports_plays=True,
        suspended=False,
        token_id=token.id,
        token_name=token.name,
        expires_at=token.expires_at,
    )


def _playlist(tracks: Popular, caller: Identity, now: int, chance: random.Random) -> int:
    made = playlists.create({"name": f"Mix {chance.random():.6f}"}, now=now, actor=caller)
    chosen = [tracks.draw(chance) for _ in range(PLAYLIST_TRACKS)]
    playlists.append(made.id, chosen, actor=caller.user_id, now=now)
    return made.id


def _comment(tracks: Popular, callers: Sequence[Identity], now: int, chance: random.Random) -> None:
    for track in tracks.ids[: min(COMMENTED, len(tracks.ids) // 20)]:
        for number in range(COMMENTS):
            text, place = f"Comment {number} of a listener.", chance.randint(0, 100)
            comments.create(track, text, position=place, now=now, actor=chance.choice(callers))


def _play(tracks: Popular, caller: Identity, now: int, chance: random.Random) -> None:
    for _ in range(min(PLAYS, 2 * len(tracks.ids)) // PLAYS_AT_ONCE):
        some = [
            ingest.ReportedPlay(
                tracks.draw(chance), now - int(chance.random() * DAYS * DAY), f"l{chance.randint(1, LISTENERS)}"
            )
            for _ in range(PLAYS_AT_ONCE)
        ]
        ingest.report(some, now=now, actor=caller)


Draw = tuple[int, "Callable[[World, Account, random.Random], str]"]
READS: tuple[Draw, ...] = (  # shares in percent
    (14, lambda world, _, chance: f"{API}/albums?page={world.pages.draw(chance)}"),
    (16, lambda world, _, chance: f"{API}/albums/{world.albums.draw(chance)}"),
    (18, lambda world, _, chance: f"{API}/tracks/{world.tracks.draw(chance)}"),
    (6, lambda world, _, chance: f"{API}/artists?page={world.pages.draw(chance) // 4 + 1}"),
    (8, lambda world, _, chance: f"{API}/artists/{world.artists.draw(chance)}"),
    (5, lambda world, _, chance: f"{API}/artists/{world.artists.draw(chance)}/albums"),
    (5, lambda world, _, chance: f"{API}/artists/{world.artists.draw(chance)}/tracks"),
    (3, lambda *_: f"{API}/genres"),
    (3, lambda *_: f"{API}/users/me"),
    (4, lambda *_: f"{API}/playlists"),
    (8, lambda _, account, chance: f"{API}/playlists/{chance.choice(account.playlists)}/tracks"),
    (6, lambda world, _, chance: f"{API}/tracks/{world.tracks.draw(chance)}/comments"),
    (2, lambda _, account, chance: f"{INSIGHTS}/artists/{account.artists.draw(chance)}"),
    (2, lambda _, account, chance: f"{INSIGHTS}/tracks/{account.tracks.draw(chance)}"),
)
WEIGHTS = [share for share, _ in READS]


def requests(world: World, account: Account, seed: str, count: int) -> Iterator[Wanted]:
    """Yield the requests of one account: reads, and 2 % writes."""
    chance = random.Random(seed)  # noqa: S311 - a load, no secret
    for _ in range(count):
        if chance.random() < WRITES:
            yield _write(world, account, chance)
        else:
            [(_, path)] = chance.choices(READS, WEIGHTS)
            yield Wanted("GET", path(world, account, chance))


def _write(world: World, account: Account, chance: random.Random) -> Wanted:
    track = world.tracks.draw(chance)
    playlist, listener = chance.choice(account.playlists), f"l{chance.randint(1, LISTENERS)}"
    choices: list[tuple[int, str, object]] = [
        (30, f"tracks/{track}/like", None),
        (25, "plays", {"plays": [{"track_id": track, "played_at": isoformat(Clock().now()), "listener": listener}]}),
        (20, f"playlists/{playlist}/tracks/add", {"ids": [track]}),
        (15, f"tracks/{track}/comments", {"content": "Another comment.", "position": chance.randint(0, 100)}),
        (10, "playlists", {"name": f"New {chance.random():.6f}"}),
    ]
    [(_, path, body)] = chance.choices(choices, [share for share, *_ in choices])
    return Wanted("POST", f"{API}/{path}", b"" if body is None else json.dumps(body).encode())
