"""Create a synthetic catalog of any size. The same scale and random seed always create the same catalog."""

from __future__ import annotations

import random
import tomllib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import accumulate, count, islice, pairwise
from math import floor
from operator import add
from typing import Any, NamedTuple

from musicsvc.clock import MINUTE, parse
from musicsvc.errors import Invalid
from musicsvc.store.catalog import genres
from musicsvc.store.catalog.fields import CHOICES
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.seeding import fixtures

ARTISTS, ALBUMS, TRACKS = 1_000, 4_000, 20_000  # at scale 1
LARGEST = 1_000
BAD_SCALE = f"The scale must be above 0 and at most {LARGEST:,}."
ARTISTS_A_UNIT = 40  # about 4,000 rows with their albums, tracks and links
BEGIN = parse("2025-01-01T00:00:00Z")
EARLIEST = date(1960, 1, 1)
DAYS = 24_000
SLOWEST = 60
KEYS = (*CHOICES["key"], None)
LICENCES = CHOICES["licensing"]
FINGERPRINTS = ("completed", "completed", "completed", "pending", "processing", "failed")
TITLES = (("qualities", "things"), ("verbs", "the", "things"), ("things", "links", "things"), ("things",))

TABLES = (Artist, Album, Track, AlbumArtist, TrackArtist, TrackGenre, TrackTag)

Words = dict[str, tuple[str, ...]]


class SyntheticSummary(NamedTuple):
    artists: int = 0
    albums: int = 0
    tracks: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A batch of artists to create, with the number of albums per artist (`albums`) and tracks per album (`tracks`)."""

    seed: str
    albums: Sequence[int]
    tracks: Sequence[int]
    first_artist: int
    first_album: int
    first_track: int


def create(
    store: Store, scale: float, random_seed: int, *, on_progress: Callable[[float, float], None]
) -> SyntheticSummary:
    """Create the catalog in batches of artists, one transaction each. Batches of an earlier run are skipped.

    `on_progress` gets the number of finished tracks and of all tracks. Raises Invalid if `scale` is out of range.
    """
    if not 0 < scale <= LARGEST:
        raise Invalid({"scale": BAD_SCALE})
    summary, total, words = SyntheticSummary(), max(1, round(TRACKS * scale)), _words()
    for block in _blocks(scale, random_seed):
        summary = SyntheticSummary(*map(add, summary, store.write(partial(_fill, block, words)).result()))
        on_progress(block.first_track + sum(block.tracks), total)
    return summary


def _words() -> Words:
    found = tomllib.loads((fixtures.folder() / "words.toml").read_text("utf-8"))
    return {name: tuple(word.strip() for word in text.split(",")) for name, text in found.items()}


def _blocks(scale: float, random_seed: int) -> Iterator[Block]:
    seed = f"{scale:g}:{random_seed}"
    artists, albums, tracks = (max(1, round(size * scale)) for size in (ARTISTS, ALBUMS, TRACKS))
    chance = random.Random(seed)  # noqa: S311 - names and sizes, no secrets
    of_artists = _sizes(max(albums, artists), artists, artists / 100, chance)
    of_albums = _sizes(max(tracks, len(of_artists)), sum(of_artists), albums / 20, chance)
    album = track = 0
    for start in range(0, artists, ARTISTS_A_UNIT):
        some = of_artists[start : start + ARTISTS_A_UNIT]
        their = of_albums[album : album + sum(some)]
        yield Block(seed, some, their, start, album, track)
        album, track = album + sum(some), track + sum(their)


def _sizes(total: int, parts: int, flatness: float, chance: random.Random) -> array[int]:
    """Return `parts` numbers with the sum `total`, in random order. By Zipf's law, few are large and most are small."""
    sums = list(accumulate(1 / (rank + flatness + 1) for rank in range(parts)))
    share = max(0, total - parts) / sums[-1]
    ends = [0, *(floor(part * share + 1e-6) for part in sums)]
    sizes = array("L", (1 + after - before for before, after in pairwise(ends)))
    chance.shuffle(sizes)
    return sizes


def _fill(block: Block, words: Words) -> SyntheticSummary:
    """Create the artists, albums and tracks of a batch, unless an earlier run did. Return how many were created."""
    first = _external_id(block, block.first_album)
    if Album.select().where(Album.external_id == first, Album.imported_for == 0).exists():
        return SyntheticSummary()
    _Writer(block, words).run()
    return SyntheticSummary(len(block.albums), len(block.tracks), sum(block.tracks))


def _external_id(block: Block, number: int) -> str:
    return f"made:{block.seed}:{number}"


class _Writer:
    """Creates the rows of one batch. Parameters `…_id` are database ids, `number` is a position in the catalog."""

    def __init__(self, block: Block, words: Words) -> None:
        self.block = block
        self.words = words
        self.chance = random.Random(f"{block.seed}:{block.first_album}")  # noqa: S311 - names and sizes, no secrets
        self.artist_ids = bulk.ids(Artist, len(block.albums))
        by_slug, by_name = genres.ensure(words["genres"]), genres.ensure_tags(words["tags"])
        self.genre_ids = [by_slug[genres.slug(name)] for name in words["genres"]]
        self.tag_ids = [by_name[name] for name in words["tags"]]
        self.rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in TABLES}

    def run(self) -> None:
        block = self.block
        albums = zip(bulk.ids(Album, len(block.tracks)), count(block.first_album), block.tracks, strict=False)
        tracks = zip(bulk.ids(Track, sum(block.tracks)), count(block.first_track), strict=False)
        for number, (artist_id, size) in enumerate(zip(self.artist_ids, block.albums, strict=True), block.first_artist):
            self._artist(artist_id, number)
            for album_id, album, length in islice(albums, size):
                day = (EARLIEST + timedelta(days=self._below(DAYS))).isoformat()
                self._album(album_id, album, artist_id, day)
                for track_id, track in islice(tracks, length):
                    self._track(track_id, track, album_id, day)
                    self._links(track_id, artist_id)
        for table, rows in self.rows.items():
            if rows:
                bulk.insert(table, tuple(rows[0]), [tuple(row.values()) for row in rows])

    def _below(self, limit: int) -> int:
        return int(self.chance.random() * limit)

    def _in(self, percent: int) -> bool:
        """Return True with a probability of `percent` percent."""
        return self._below(100) < percent

    def _one(self, choices: Sequence[Any]) -> Any:
        return choices[self._below(len(choices))]

    def _name(self, *kinds: str) -> str:
        """Join one random word of each kind, such as `verbs`. A text that is not a kind is inserted unchanged."""
        return " ".join(self._one(self.words[kind]) if kind in self.words else kind for kind in kinds)

    def _image(self, kind: str, number: int, percent: int) -> str | None:
        return f"https://images.example.test/{kind}/{number}.jpg" if self._in(percent) else None

    def _artist(self, artist_id: int, number: int) -> None:
        name = self._name("The", "qualities", "groups") if self._in(40) else self._name("first", "last")
        row = {"id": artist_id, "name": name, "image_small": self._image("artists", number, 70)}
        self.rows[Artist].append(row | {"verified": self._in(10), "created_at": BEGIN + number * MINUTE})

    def _album(self, album_id: int, number: int, artist_id: int, day: str) -> None:
        row = {"id": album_id, "image": self._image("albums", number, 90), "name": self._title(), "release_date": day}
        self.rows[Album].append(row | self._identity(number))
        self.rows[AlbumArtist].append({"album": album_id, "artist": artist_id, "position": 0})

    def _track(self, track_id: int, number: int, album_id: int, day: str) -> None:
        row = {
            "id": track_id,
            "album": album_id,
            "release_date": day,
            "duration": int(self.chance.lognormvariate(12.2, 0.35)),  # milliseconds, around three and a half minutes
            "bpm": SLOWEST + self._below(120),
            "key": self._one(KEYS),
            "scale": self._one(CHOICES["scale"]),
            "fingerprint_status": self._one(FINGERPRINTS),
            "name": self._title(),
        }
        self.rows[Track].append(row | self._terms() | self._identity(number))

    def _identity(self, number: int) -> dict[str, Any]:
        return {"external_id": _external_id(self.block, number), "created_at": BEGIN + number * MINUTE}

    def _terms(self) -> dict[str, Any]:
        """Return random terms of sale by column: price, licence, exclusive status, exclusive price."""
        names = ("price", "licensing_type", "exclusive_status", "exclusive_price")
        if not self._in(30):
            return dict(zip(names, (None, LICENCES[0], "not_available", None), strict=True))
        price, licence, status = self._below(60) + 0.99, self._one(LICENCES), self._one(CHOICES["availability"])
        return dict(zip(names, (price, licence, status, float(200 + self._below(2000))), strict=True))

    def _links(self, track_id: int, artist_id: int) -> None:
        guests = {self._one(self.artist_ids) for _ in range(3) if self._in(8)} - {artist_id}
        self.rows[TrackArtist] += [
            {"track": track_id, "artist": each, "position": at} for at, each in enumerate((artist_id, *sorted(guests)))
        ]
        # Squared, so that a few genres are frequent.
        styles = {int(self.chance.random() ** 2 * len(self.genre_ids)) for _ in range(1 + self._below(2))}
        self.rows[TrackGenre] += [{"track": track_id, "genre": self.genre_ids[style]} for style in sorted(styles)]
        labels = {self._one(self.tag_ids) for _ in range(self._below(4))}
        self.rows[TrackTag] += [{"track": track_id, "tag": tag_id} for tag_id in sorted(labels)]

    def _title(self) -> str:
        return self._name(*self._one(TITLES))
