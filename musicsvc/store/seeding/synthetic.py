"""A made catalog of any size: names of our own words, sizes after Zipf, the same for the same scale and random seed."""

from __future__ import annotations

import random
import tomllib
from array import array
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import accumulate, count, islice, pairwise
from math import floor
from typing import TYPE_CHECKING, Any

from musicsvc.clock import MINUTE, parse
from musicsvc.errors import Invalid
from musicsvc.store.catalog import genres, tags
from musicsvc.store.engine import bulk
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.seeding import fixtures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from musicsvc.store.engine.store import Store

ARTISTS, ALBUMS, TRACKS = 1_000, 4_000, 20_000  # at scale 1
LARGEST = 1_000
ARTISTS_A_UNIT = 40  # with their albums, tracks and links some 4,000 rows
BEGIN = parse("2025-01-01T00:00:00Z")
EARLIEST = date(1960, 1, 1)
DAYS = 24_000
SLOWEST = 60
SCALES = ("Major", "Minor")
KEYS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B", None)
LICENCES = ("non_exclusive_only", "both", "exclusive_only")
EXCLUSIVE = ("available", "not_available", "sold")
FINGERPRINTS = ("completed", "completed", "completed", "pending", "processing", "failed")
TITLES = (("qualities", "things"), ("verbs", "the", "things"), ("things", "links", "things"), ("things",))

Words = dict[str, tuple[str, ...]]


@dataclass(slots=True)
class Summary:
    """How much was made; blocks that were there already count nothing."""

    artists: int = 0
    albums: int = 0
    tracks: int = 0

    def add(self, other: Summary) -> None:
        """Count these too."""
        self.artists += other.artists
        self.albums += other.albums
        self.tracks += other.tracks


@dataclass(frozen=True, slots=True)
class Block:
    """Some artists with all that is theirs: how many albums each has, how many tracks each album."""

    seed: str
    albums: Sequence[int]
    tracks: Sequence[int]
    first_artist: int
    first_album: int
    first_track: int


def make(store: Store, scale: float, random_seed: int, *, told: Callable[[float, float], None]) -> Summary:
    """Fill the store, a unit for a block of artists; what an earlier run has made is left as it is.

    `told` hears how many tracks of how many are through.
    """
    if not 0 < scale <= LARGEST:
        raise Invalid({"scale": f"The scale must be above 0 and at most {LARGEST:,}."})
    summary, total, words = Summary(), max(1, round(TRACKS * scale)), _words()
    for block in _blocks(scale, random_seed):
        summary.add(store.write(partial(_fill, block, words)).result())
        told(block.first_track + sum(block.tracks), total)
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
    """The total in so many parts of at least 1, the n-th largest near 1 / (n + flatness), in random order."""
    sums = list(accumulate(1 / (rank + flatness + 1) for rank in range(parts)))
    share = max(0, total - parts) / sums[-1]
    ends = [0, *(floor(part * share + 1e-6) for part in sums)]
    sizes = array("L", (1 + after - before for before, after in pairwise(ends)))
    chance.shuffle(sizes)
    return sizes


def _fill(block: Block, words: Words) -> Summary:
    """Write the block, unless it is there."""
    first = _external_id(block, block.first_album)
    if Album.select().where(Album.external_id == first, Album.imported_for == 0).exists():
        return Summary()
    _Writer(block, words).run()
    return Summary(len(block.albums), len(block.tracks), sum(block.tracks))


def _external_id(block: Block, number: int) -> str:
    return f"made:{block.seed}:{number}"


class _Writer:
    """The rows of one block; `number` counts artists, albums and tracks over all blocks."""

    def __init__(self, block: Block, words: Words) -> None:
        self.block = block
        self.words = words
        self.chance = random.Random(f"{block.seed}:{block.first_album}")  # noqa: S311 - the same
        self.artist_ids = bulk.ids(Artist, len(block.albums))
        by_slug, by_name = genres.ensure(words["genres"]), tags.ensure(words["tags"])
        self.genre_ids = [by_slug[genres.slug(name)] for name in words["genres"]]
        self.tag_ids = [by_name[name] for name in words["tags"]]
        self.rows: dict[Any, list[tuple[Any, ...]]] = {table: [] for table in FIELDS}

    def run(self) -> None:
        """Make the rows, then write them."""
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
        for table, fields in FIELDS.items():
            bulk.insert(table, fields, self.rows[table])

    def _below(self, limit: int) -> int:
        return int(self.chance.random() * limit)

    def _in(self, hundred: int) -> bool:
        """True so many times in a hundred."""
        return self._below(100) < hundred

    def _one(self, choices: Sequence[Any]) -> Any:
        return choices[self._below(len(choices))]

    def _name(self, *kinds: str) -> str:
        """A word of each kind; what is no kind stands for itself."""
        return " ".join(self._one(self.words[kind]) if kind in self.words else kind for kind in kinds)

    def _image(self, kind: str, number: int, hundred: int) -> str | None:
        return f"https://images.example.test/{kind}/{number}.jpg" if self._in(hundred) else None

    def _artist(self, artist_id: int, number: int) -> None:
        name = self._name("The", "qualities", "groups") if self._in(40) else self._name("first", "last")
        image, verified = self._image("artists", number, 70), self._in(10)
        self.rows[Artist].append((artist_id, name, image, verified, BEGIN + number * MINUTE))

    def _album(self, album_id: int, number: int, artist_id: int, day: str) -> None:
        image, identity = self._image("albums", number, 90), _external_id(self.block, number)
        self.rows[Album].append((album_id, self._title(), image, day, identity, BEGIN + number * MINUTE))
        self.rows[AlbumArtist].append((album_id, artist_id, 0))

    def _track(self, track_id: int, number: int, album_id: int, day: str) -> None:
        length = int(self.chance.lognormvariate(12.2, 0.35))  # milliseconds, around three and a half minutes
        sound = (SLOWEST + self._below(120), self._one(KEYS), self._one(SCALES))
        identity = (_external_id(self.block, number), BEGIN + number * MINUTE)
        state = self._one(FINGERPRINTS)
        self.rows[Track].append(
            (track_id, self._title(), album_id, day, length, *sound, *self._terms(), state, *identity)
        )

    def _terms(self) -> tuple[Any, ...]:
        """Price, licence, exclusive status and exclusive price."""
        if not self._in(30):
            return None, LICENCES[0], "not_available", None
        return self._below(60) + 0.99, self._one(LICENCES), self._one(EXCLUSIVE), float(200 + self._below(2000))

    def _links(self, track_id: int, artist_id: int) -> None:
        guests = {self._one(self.artist_ids) for _ in range(3) if self._in(8)} - {artist_id}
        credit = (artist_id, *sorted(guests))
        self.rows[TrackArtist] += [(track_id, each, position) for position, each in enumerate(credit)]
        # Squared, so that a few genres are the common ones.
        styles = {int(self.chance.random() ** 2 * len(self.genre_ids)) for _ in range(1 + self._below(2))}
        self.rows[TrackGenre] += [(track_id, self.genre_ids[style]) for style in sorted(styles)]
        labels = {self._one(self.tag_ids) for _ in range(self._below(4))}
        self.rows[TrackTag] += [(track_id, tag_id) for tag_id in sorted(labels)]

    def _title(self) -> str:
        return self._name(*self._one(TITLES))


FIELDS: dict[Any, tuple[str, ...]] = {
    Artist: ("id", "name", "image_small", "verified", "created_at"),
    Album: ("id", "name", "image", "release_date", "external_id", "created_at"),
    Track: (
        "id",
        "name",
        "album",
        "release_date",
        "duration",
        "bpm",
        "key",
        "scale",
        "price",
        "licensing_type",
        "exclusive_status",
        "exclusive_price",
        "fingerprint_status",
        "external_id",
        "created_at",
    ),
    AlbumArtist: ("album", "artist", "position"),
    TrackArtist: ("track", "artist", "position"),
    TrackGenre: ("track", "genre"),
    TrackTag: ("track", "tag"),
}
