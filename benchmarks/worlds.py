"""The databases of the benchmarks, each made by the package of the checkout that is measured.

Each function returns the token of an account in it, and what the benchmark must know. The same arguments give the same
data, apart from times, which end now.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, islice
from typing import Any

from harness import answer_inside
from peewee import Model

from musicsvc.clock import DAY, Clock, to_date
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store import models
from musicsvc.store.accounts import api_access, passwords, tokens, users
from musicsvc.store.engagement import comments, engagement_days
from musicsvc.store.engine import bulk, list_blocks, sql
from musicsvc.store.engine.sql import is_sqlite
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, ReportLink, Session, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.playlists import playlists
from musicsvc.store.plays import ingest

try:
    from musicsvc.store.plays.counting import roll_up
except ImportError:  # version 0.1.0
    from musicsvc.store.plays.ingest import roll_up  # type: ignore[attr-defined, no-redef]
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.subjects import ARTIST
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures, plays, synthetic
from tests.rights.world import PASSWORD

NOW = Clock().now()
Made = tuple[str, Any]


def _load() -> str:
    return fixtures.load(now=NOW).tokens["demo"]


def _token(user: models.User) -> str:
    return tokens.create(user, "benchmark", now=NOW)[1]


def small(store: Store, _: object = None) -> Made:
    """The fixtures, in a database of its own for each argument."""
    return store.write(_load).result(), None


def catalog(store: Store, albums: int) -> Made:
    """A synthetic catalog."""
    token = store.write(_load).result()
    synthetic.create(store, albums / synthetic.ALBUMS, 1, on_progress=lambda *_: None)
    return token, None


# The mixed load: 50 accounts, each with a fiftieth of the artists and five playlists of twenty tracks.

ACCOUNTS, PLAYLISTS, PLAYLIST_TRACKS = 50, 5, 20
COMMENTED, COMMENTS = 200, 12
PLAYS, PLAYS_AT_ONCE, LISTENERS, DAYS = 30_000, 1_000, 5_000, 60


def mixed(store: Store, albums: int) -> Made:
    """A catalog with accounts, playlists, comments and plays; ids are in the order of popularity (Zipf)."""
    token, _ = catalog(store, albums)
    return token, store.write(_people).result()


def _people() -> dict[str, Any]:
    chance = random.Random("people")
    tracks, albums, artists = (_shuffled(table.select(table.id)) for table in (Track, Album, Artist))
    weights = list(accumulate(1 / rank for rank in range(1, len(tracks) + 1)))
    draw = partial(chance.choices, tracks, cum_weights=weights)
    accounts, callers = [], []
    for number in range(ACCOUNTS):
        user = users.create(f"listener{number}@mix.test", api_access=True, now=NOW)
        api_access.grant(user, plays=True, now=NOW)
        token = _token(user)
        caller = tokens.identify(tokens.digest(token))
        assert caller is not None
        callers.append(caller)
        managed = artists[number::ACCOUNTS]
        Artist.update(manager=user.id).where(Artist.id.in_(managed)).execute()
        own = TrackArtist.select(TrackArtist.track).where(TrackArtist.artist.in_(managed)).distinct()
        lists = [_playlist(draw(k=PLAYLIST_TRACKS), caller, chance.random()) for _ in range(PLAYLISTS)]
        accounts.append({"token": token, "playlists": lists, "artists": managed, "tracks": _shuffled(own)})
    for track in tracks[: min(COMMENTED, len(tracks) // 20)]:
        for number in range(COMMENTS):
            comments.create(track, f"Comment {number}.", position=0, now=NOW, actor=chance.choice(callers))
    for _ in range(min(PLAYS, 2 * len(tracks)) // PLAYS_AT_ONCE):
        some = [
            ingest.ReportedPlay(each, NOW - int(chance.random() * DAYS * DAY), f"l{chance.randint(1, LISTENERS)}")
            for each in draw(k=PLAYS_AT_ONCE)
        ]
        ingest.report(some, now=NOW, actor=callers[0])
    return {"tracks": tracks, "albums": albums, "artists": artists, "accounts": accounts}


def _shuffled(query: Any) -> list[int]:
    ids = sorted({values[0] for values in query.tuples().iterator()})
    return random.Random("popular").sample(ids, len(ids))


def _playlist(tracks: Sequence[int], caller: Any, number: float) -> int:
    made = playlists.create({"name": f"Mix {number:.6f}"}, now=NOW, actor=caller)
    playlists.append(made.id, tracks, actor=caller.user_id, now=NOW)
    return made.id


# Figures: track 1 is the most played one, artist 1 has 50 of the 200 most played tracks.

ARTISTS_IN_TURN, TRACKS_AN_ARTIST, TRACKS_AN_ALBUM = 4, 50, 10
FIGURE_TRACKS, FIGURE_DAYS = 100_000, 365
LISTENERS_A_TRACK = 2
LENGTH = 200_000  # milliseconds, of every track
BATCH = 50_000
TRACKS_A_FAN = 50  # fans are accounts that like and follow
RELEASED_DAYS = 45  # before today: all albums, so that releases can be compared


def figures(
    store: Store, count: int, gap: int = 0, tracks_an_artist: int = TRACKS_AN_ARTIST, unplayed: str = ""
) -> Made:
    """Plays of 100,000 tracks (Zipf) by 200,000 listeners in order of time: a year until now or `gap` days ago.

    There are no more tracks than plays. `unplayed`: none is played.
    """
    tracks = min(count, FIGURE_TRACKS)
    made = store.write(partial(label, tracks_an_artist, tracks)).result()
    stream = Stream(count, FIGURE_DAYS * DAY, gap * DAY, tracks=tracks)
    for start in range(0, 0 if unplayed else count, BATCH):
        store.write(partial(record, stream.batch(min(BATCH, count - start)))).result()
    return made


class Stream:
    """Plays of the last `span` microseconds except the last `gap`, in order of time."""

    def __init__(self, count: int, span: int, gap: int, seed: int = 1, tracks: int = FIGURE_TRACKS) -> None:
        self._chance = random.Random(seed)
        self._tracks = range(1, tracks + 1)
        self._weights = list(accumulate(1 / rank for rank in self._tracks))
        self._step = (span - gap) // max(1, count)
        self._now = NOW - span

    def batch(self, size: int) -> list[PlayRow]:
        """Return the next plays."""
        return [self._play(each) for each in self._chance.choices(self._tracks, cum_weights=self._weights, k=size)]

    def _play(self, track: int) -> PlayRow:
        self._now += self._step
        listener = 1 + int(self._chance.random() * len(self._tracks) * LISTENERS_A_TRACK)
        lasted = (self._now // SLOT * 7_919 + listener * 104_729) % (LENGTH * 11 // 10)
        return PlayRow(self._now // SLOT, track, listener, b"", self._now, lasted, 0)


def record(rows: Sequence[PlayRow]) -> int:
    """Record plays as requests of a thousand do, with the counts that become due. Return how many are new."""
    taken = ingest.record(rows)
    for _ in range(0, len(rows), 1_000):
        roll_up(min(taken, 1_000))
    return taken


def label(tracks_an_artist: int, count: int = FIGURE_TRACKS) -> tuple[str, str]:
    manager = users.create("manager@label.test", api_access=True, now=NOW)
    api_access.grant(manager, plays=True, now=NOW)
    fans = [users.create(f"p{number}@label.test", now=NOW).id for number in range(count // TRACKS_A_FAN)]
    tracks, listeners = range(1, count + 1), count * LISTENERS_A_TRACK
    artists = {each: artist_of(each, tracks_an_artist) for each in tracks}
    on = {each: _album_of(each, tracks_an_artist) for each in tracks}
    albums = {on[each]: artists[each] for each in tracks}
    released = to_date(NOW - RELEASED_DAYS * DAY).isoformat()
    add(Artist, "id name manager created_at", ((n, f"Artist {n}", manager.id, NOW) for n in {*artists.values()}))
    add(Album, "id name release_date created_at", ((n, f"Album {n}", released, NOW) for n in albums))
    add(AlbumArtist, "album artist position", ((*pair, 0) for pair in albums.items()))
    rows = ((n, f"Track {n}", LENGTH, on[n], NOW) for n in tracks)
    add(Track, "id name duration album created_at", rows)
    add(TrackArtist, "track artist position", ((*pair, 0) for pair in artists.items()))
    add(models.Follow, "follower followed created_at", ((each, manager.id, NOW) for each in fans))
    add(models.TrackLike, "track user created_at", ((n, each, NOW) for n in tracks[:100] for each in fans[n % 2 :: 2]))
    add(models.Listener, "id key", ((n, f"opaque:benchmark {n}") for n in range(1, listeners + 1)))
    if not is_sqlite():  # its sequence does not notice ids that are given
        sql.fetch("SELECT setval('listener_id_seq', ?)", listeners)
    engagement_days.rebuild({(each.kind, each.subject) for each in engagement_days.wrong()})
    return _token(manager), sessions.create(manager, address="127.0.0.1", agent="benchmark", now=NOW)


def add(table: type[Model], columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows, some at a time."""
    left = iter(rows)
    while some := list(islice(left, BATCH)):
        bulk.insert(table, columns.split(), some)


def artist_of(track: int, tracks_an_artist: int) -> int:
    rank = track - 1
    return rank // (ARTISTS_IN_TURN * tracks_an_artist) * ARTISTS_IN_TURN + rank % ARTISTS_IN_TURN + 1


def _album_of(track: int, tracks_an_artist: int) -> int:
    place = (track - 1) // ARTISTS_IN_TURN % tracks_an_artist
    return (
        (artist_of(track, tracks_an_artist) - 1) * (tracks_an_artist // TRACKS_AN_ALBUM) + place // TRACKS_AN_ALBUM + 1
    )


FIRST = 900_000  # of the ids
NUMBERS = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n) n"
LISTS = """
INSERT INTO artist (id, name, verified, created_at) SELECT 900000 + i, 'Artist ' || i, FALSE, 1 FROM {quarter};
INSERT INTO album (id, name, created_at) SELECT 900000 + i, 'Album ' || i, 1 FROM {all};
INSERT INTO genre (name, display_name) SELECT 'genre-' || i, 'Genre ' || i FROM {tenth};
INSERT INTO track
    (id, album_id, name, duration, currency, licensing_type, exclusive_status, fingerprint_status, created_at)
    SELECT 900000 + i, 900000 + i, 'Track ' || i, 1000, 'USD', 'both', 'available', 'completed', 1 FROM {all};
INSERT INTO track_plays (track_id, plays) SELECT 900000 + i, 1 + 1000000 / i FROM {all} WHERE i < 50000;
INSERT INTO track_artist (track_id, artist_id, position) SELECT 900000 + i, 900001, 0 FROM {all};
INSERT INTO track_artist (track_id, artist_id, position) SELECT 900000 + i, 900000 + i, 1 FROM {quarter} WHERE i > 1;
INSERT INTO playlist (owner_id, name, public, collaborative, created_at)
    SELECT (SELECT user_id FROM token ORDER BY id LIMIT 1), 'Playlist ' || i, FALSE, FALSE, 1 FROM {all};
INSERT INTO comment (track_id, user_id, content, position, depth, deleted, place, created_at)
    SELECT 900001, (SELECT user_id FROM token ORDER BY id LIMIT 1), 'hm', 1, 0, FALSE, i * 1000, 1 FROM {all}
"""


def lists(store: Store, rows: int) -> Made:
    """Albums, tracks of one artist, playlists, comments on one track; fewer artists and genres."""
    token = store.write(_load).result()
    store.write(partial(_add_lists, rows)).result()
    store.write(lambda: sql.run("ANALYZE")).result()
    return token, FIRST + 1


def _add_lists(rows: int) -> None:
    if not is_sqlite():  # without triggers, and counted at the end, which is faster
        sql.run("SET LOCAL session_replication_role = replica")
    parts = {"all": rows, "quarter": rows // 4, "tenth": rows // 10}
    series = NUMBERS if is_sqlite() else "generate_series(1, {count}) n (i)"
    for statement in LISTS.format(**{name: series.format(count=count) for name, count in parts.items()}).split(";"):
        sql.run(statement)
    if not is_sqlite():
        list_blocks.rebuild()


DESCRIPTION = "x" * 10_000  # of each track in a collection
LARGEST = 760_000  # bytes of an album as JSON; 786,432 are allowed
TRACK_BYTES = 165  # of a track as JSON without its description
NEWEST = 20  # small albums that are newer than the large ones: the honest client lists them


def collections(store: Store, count: int, readers: int) -> Made:
    """Collections of 500 tracks with long descriptions, all of one account; pairs of a token and the path of a list."""

    def write() -> Made:
        owner = users.create("collector@label.test", api_access=True, now=NOW)
        artist = Artist.create(name="Erik Satie", manager=owner.id, created_at=1).id
        tracks = bulk.ids(Track, 500)
        _add_tracks(tracks, None, artist, DESCRIPTION)
        ids = bulk.ids(models.Collection, count)
        names = [(each, owner.id, f"Collection {each}", 1) for each in ids]
        add(models.Collection, "id user name created_at", names)
        links = ((each, at, track) for each in ids for at, track in enumerate(tracks))
        add(models.CollectionTrack, "collection position track", links)
        return _load(), [(_token(owner), "/api/v1/collections") for _ in range(readers)]

    return store.write(write).result()


def albums(store: Store, count: int, readers: int) -> Made:
    """Albums of nearly the largest size, all by one artist; pairs of a token and the path of a list."""

    def write() -> Made:
        token, owner = _load(), users.create("prolific@label.test", api_access=True, now=NOW)
        artist = Artist.create(name="Erik Satie", manager=owner.id, created_at=1).id
        other = Artist.create(name="Amy Beach", created_at=1).id
        long = "x" * (LARGEST // 1000 - TRACK_BYTES)
        for number, each in enumerate(bulk.ids(Album, count + NEWEST)):
            by, size, text = (artist, 1000, long) if number < count else (other, 10, "")
            add(Album, "id name created_at", [(each, f"Album {each}", 1)])
            add(AlbumArtist, "album artist position", [(each, by, 0)])
            _add_tracks(bulk.ids(Track, size), each, by, text)
        return token, [(_token(owner), f"/api/v1/artists/{artist}/albums") for _ in range(readers)]

    return store.write(write).result()


def _add_tracks(ids: Sequence[int], album: int | None, artist: int, description: str) -> None:
    rows = [(each, f"Track {each}", album, 1000, 1, description) for each in ids]
    add(Track, "id name album duration created_at description", rows)
    add(TrackArtist, "track artist position", [(each, artist, 0) for each in ids])


CENTURY = 36_500  # days


def cheats(store: Store) -> Made:
    """Plays of the fixtures, and two fresh accounts: an artist, a track of it, and the tokens of the accounts."""

    def write() -> Made:
        token = _load()
        plays.load(now=NOW)
        track, artist = TrackArtist.select(TrackArtist.track, TrackArtist.artist).tuples().first()
        fresh = [users.create(f"{name}@mix.test", api_access=True, now=NOW) for name in ("burst", "spread")]
        return token, [artist, track, [_token(user) for user in fresh]]

    return store.write(write).result()


def links(store: Store, count: int) -> Made:
    """Links to reports of 100 years, as earlier versions made them: their paths."""

    def write() -> Made:
        token = _load()
        artist = Artist.select().where(Artist.manager > 0).first()
        today = NOW // DAY
        rows = [
            ReportLink.create(
                user=artist.manager_id,
                kind=ARTIST,
                subject=artist.id,
                first_day=today - CENTURY + number,
                end_day=today + 1,
                created_at=NOW,
                expires_at=NOW + DAY,
            )
            for number in range(count)
        ]
        return token, [share_links.address(row.id, row.created_at, Site("")) for row in rows]

    return store.write(write).result()


def people(store: Store, count: int, open_sessions: int) -> Made:
    """Accounts with the password of tests/support, and a session of the second one, which has many more."""

    def write() -> Made:
        hashed = passwords.hash_password(PASSWORD)
        some = [users.create(f"person{n}@crowd.test", password_hash=hashed, now=NOW) for n in range(count)]
        session = sessions.create(some[1], address="127.0.0.1", agent="benchmark", now=NOW)
        ids = bulk.ids(Session, open_sessions)
        rows = ((n, some[1].id, sessions.digest(f"other {n}"), NOW - n, NOW - n, "", "Mozilla/5.0") for n in ids)
        add(Session, "id user digest created_at last_used_at address agent", rows)
        return _load(), session

    return store.write(write).result()


RIVALS_TRACKS, RIVALS_ARTISTS = 60, 3


def rivals(store: Store, count: int) -> Made:
    """Two labels, the small one with few tracks and the large one with `count`, each name twice: their sessions."""

    def write() -> Made:
        token, found = _load(), {}
        for name, size in (("small", RIVALS_TRACKS), ("large", count)):
            manager = users.create(f"{name}@rivals.test", api_access=True, now=NOW)
            found[name] = sessions.create(manager, address="127.0.0.1", agent="benchmark", now=NOW)
            artists, tracks = bulk.ids(Artist, RIVALS_ARTISTS), bulk.ids(Track, size)
            add(Artist, "id name manager created_at", ((each, f"{name} {each}", manager.id, NOW) for each in artists))
            add(Track, "id name duration created_at", ((each, f"{name} {each // 2}", LENGTH, NOW) for each in tracks))
            shares = ((each, artists[each % RIVALS_ARTISTS], 0) for each in tracks)
            add(TrackArtist, "track artist position", shares)
        return token, found

    return store.write(write).result()


WORLDS: dict[str, Callable[..., object]] = {
    each.__name__: each
    for each in (small, catalog, mixed, figures, lists, collections, albums, cheats, links, people, rivals)
}

if __name__ == "__main__":
    answer_inside(WORLDS)
