"""Speed of `GET /search` and of `GET /tracks` with a text, in the store; and of writing what they find.

    python benchmarks/catalog_search.py [--tracks 1000000] [--store sqlite|postgres] [--file DATABASE] [--managed]

With `--managed`, of `/insights?q=` instead: one account manages the tracks with even ids, and the titles of all others
contain the word "strange".

A tenth as many albums and a twentieth as many artists. `--file` keeps the SQLite database for the next run.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from search import names, new_store

from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog import search, track_lists
from musicsvc.store.catalog.track_lists import TrackFilters
from musicsvc.store.dashboards import catalog_search
from musicsvc.store.engine import bulk
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track, TrackArtist
from musicsvc.store.playlists import playlists
from musicsvc.store.plays import periods
from musicsvc.store.schema import schema

BATCH, ROUNDS = 10_000, 11
WORDS = [
    "love",
    "you",
    "me",
    "the",
    "night",
    "my",
    "of",
    "baby",
    "heart",
    "in",
    "to",
    "dance",
    "away",
    "blue",
    "world",
    "time",
    "all",
    "dream",
    "rain",
    "fire",
    "light",
    "without",
    "home",
    "summer",
    "sky",
    "again",
    "river",
    "dancing",
    "moon",
    "lonely",
    "golden",
    "midnight",
    "train",
    "shadow",
    "velvet",
    "thunder",
    "harbor",
    "cathedral",
    "zeppelin",
]
# Kinds of text, and the texts; the last kinds are the hardest.
TEXTS = {
    "a common word": ["love", "night", "the", "you"],
    "1 character": ["l", "t"],
    "2 characters": ["lo", "zz"],
    "within words": ["ove", "ight"],
    "two words": ["love night", "golden rain"],
    "a rare word": ["zeppelin", "cathedral"],
    "ISRC": ["GB-AYE-68-00011"],
    "no match": ["xqzw"],
    "common parts, no match": ["the of the in", "love ziii"],
}


def titles(count: int) -> Iterator[str]:
    """Yield titles of one to five words, some of them very common."""
    chance = random.Random(1)  # noqa: S311 - the same titles in every run
    weights = [1 / (rank + 2) for rank in range(len(WORDS))]
    for number in range(count):
        words = chance.choices(WORDS, weights, k=chance.choice((1, 2, 2, 3, 3, 4, 5)))
        rest = chance.choices(("", f" {number % 97}", " (Live)", " (Radio Edit)"), (80, 8, 6, 6))[0]
        yield " ".join(words).title() + rest


def fill(store: Store, count: int) -> None:
    """Create the artists, albums and tracks that are missing."""
    present = store.read(lambda: Track.select().count()).result()
    if present:
        return
    artists = names(max(1, count // 20))
    albums = titles(max(1, count // 10))
    tracks = enumerate(titles(count))
    add(store, lambda: [(name, 1) for name in islice(artists, BATCH)], Artist, ("name", "created_at"))
    add(store, lambda: [(name, 1) for name in islice(albums, BATCH)], Album, ("name", "created_at"))
    add(
        store,
        lambda: [(name, 1, 1, f"GBAYE{number:07}") for number, name in islice(tracks, BATCH)],
        Track,
        ("name", "duration", "created_at", "isrc"),
    )
    links = iter(range(1, count + 1))
    add(
        store,
        lambda: [(track, 1 + track % max(1, count // 20), 0) for track in islice(links, BATCH)],
        TrackArtist,
        ("track", "artist", "position"),
    )


def add(store: Store, rows: Callable[[], list[Any]], table: Any, columns: tuple[str, ...]) -> None:
    began, count = time.perf_counter(), 0
    while batch := rows():
        store.write(partial(bulk.insert, table, columns, batch)).result()
        count += len(batch)
    seconds = time.perf_counter() - began
    print(f"{count:,} rows of {table.__name__} in {seconds:.1f} s, {count / seconds:,.0f} a second")


def whole(text: str) -> None:
    """Search as `GET /search` does, without JSON."""
    _ = search.find_artists(text), search.find_albums(text).rows, search.find_tracks(text).rows
    playlists.find_public(text, search.MOST)


def page(text: str, number: int = 1) -> int:
    """List tracks as `GET /tracks?q=` does, without JSON. Return the number of all matches."""
    found = track_lists.find(TrackFilters(name=text), Page(number))
    return len(found.rows) and found.total


def median(store: Store, unit: Callable[[], Any]) -> float:
    """Return milliseconds: of CPU time on SQLite, of waiting for PostgreSQL."""
    clock = time.process_time if store.url.startswith("sqlite") else time.perf_counter
    times = []
    for _ in range(ROUNDS):
        began = clock()
        store.read(unit).result()
        times.append(clock() - began)
    return statistics.median(times) * 1000


def measure(store: Store) -> None:
    """Print a line per text: milliseconds of a search, and of the first page of matching tracks."""
    for kind, texts in TEXTS.items():
        for text in texts:
            found = store.read(partial(page, text)).result()
            times = [median(store, partial(whole, text)), median(store, partial(page, text))]
            print(f"{kind:24} {text:16} /search {times[0]:8.2f} ms   /tracks {times[1]:8.2f} ms   {found:9,} tracks")
    print(f"a page of all tracks {median(store, lambda: track_lists.find(TrackFilters(), Page(500)).rows):.2f} ms")


def assign(store: Store) -> int:
    """Give the artists of the tracks with even ids to one account, mark the titles of others; return its id."""
    for (user,) in store.read(
        lambda: fetch("SELECT manager_id FROM artist WHERE manager_id IS NOT NULL LIMIT 1")
    ).result():
        return int(user)
    made = store.write(lambda: users.create("label@label.test", now=1).id).result()
    last = store.read(lambda: Track.select().count()).result()
    store.write(lambda: run("UPDATE artist SET manager_id = ? WHERE id & 1 = 1", made)).result()
    for first in range(0, last, BATCH):
        rename = "UPDATE track SET name = name || ' Strange' WHERE id > ? AND id <= ? AND id & 1 = 1"
        store.write(partial(run, rename, first, first + BATCH)).result()
    if store.url.startswith("postgres"):
        store.write(lambda: run("ANALYZE")).result()
    return made


def measure_managed(store: Store, user: int) -> None:
    """Print milliseconds of a search on the page of figures, by text."""
    window = periods.window("30-days", 1_772_366_400_000_000)
    for text in ("love", "l", "lo", "ove", "love night", "zeppelin", "strange", "strange x", "xqzw", "GBAYE0000011"):
        for page in (1, 5):
            unit = partial(catalog_search.find, text, user, window, page)
            found = len(store.read(unit).result().results)
            print(f"{text:14} page {page}  {median(store, unit):8.2f} ms  {found:3} results")


def main() -> None:
    """Fill a database, then search it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tracks", type=int, default=1_000_000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--managed", action="store_true")
    options = parser.parse_args()
    if options.file and not options.file.exists():
        files.create(options.file)
    with nullcontext(f"sqlite:///{options.file}") if options.file else new_store(options.store) as url:
        schema.upgrade(url)
        with opening.connect(url) as store:
            fill(store, options.tracks)
            if options.managed:
                measure_managed(store, assign(store))
            else:
                measure(store)


if __name__ == "__main__":
    main()
