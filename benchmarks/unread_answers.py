"""Effect of six clients that never read: the server's memory, and the answers to an honest client beside them.

    python benchmarks/unread_answers.py [--seconds 20] [--readers 6] [--worlds collections,albums] [--scale 1]

Runs the real program with one worker and plain HTTP. Each client has a token of its own, requests the largest page that
it can get, reads the status and nothing more, and reconnects when it is disconnected. `collections`: 100 collections of
500 tracks with descriptions of 10 KB each. `albums`: an artist with 100 albums of 1,000 tracks, each album nearly as
large as allowed. Exit 1 if a guarantee is broken: memory grows by at most 128 MiB, the honest p99 is at most 250 ms.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from musicsvc.clock import Clock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine import bulk
from musicsvc.store.models import Album, AlbumArtist, Artist, Collection, CollectionTrack, Track, TrackArtist

sys.path.insert(0, str(Path(__file__).parent))
from collections.abc import Callable

import honest_client
from network_server import (
    MEBIBYTE,
    MOST_MEMORY,
    MOST_SECONDS,
    Server,
    Watch,
    output_of,
    percentile,
    percentiles,
    running,
)

from musicsvc.store.engine.store import Store

DESCRIPTION = "x" * 10_000  # description of each track in a collection
ALBUM = 760_000  # bytes of an album as JSON; 786,432 are allowed
TRACK = 165  # bytes of a track as JSON without its description
NEWEST = 20  # small albums that are newer than the large ones: the honest client lists them


def main() -> None:
    """Measure each data set; exit 1 if a guarantee is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--readers", type=int, default=6)
    options.add_argument("--worlds", default=",".join(WORLDS))
    options.add_argument("--scale", type=float, default=1.0, help="of the number of collections and albums")
    options.add_argument("--late", type=float, default=MOST_SECONDS, help="seconds that the honest p99 may take")
    given = options.parse_args()
    broken = []
    with tempfile.TemporaryDirectory() as folder:
        for world in given.worlds.split(","):
            fill = partial(WORLDS[world], round(100 * given.scale), given.readers)
            with running(Path(folder) / world, {}, tls=False, fill=fill) as server:
                print(f"{world}:")
                broken += measure(server, given)
    for each in broken:
        print(f"broken: {each}")
    sys.exit(1 if broken else 0)


def measure(server: Server, given: argparse.Namespace) -> list[str]:
    """Measure honest answers without and with the readers; return the broken guarantees."""
    alone = output_of(server.ask("honest_client.py", min(10.0, given.seconds / 2)))
    before = server.memory
    with Watch(server) as watch:
        crowd = server.ask("unread_crowd.py", given.seconds + 0.5, json.dumps(server.filled))
        beside = output_of(server.ask("honest_client.py", given.seconds))
        unread = output_of(crowd)
    more = watch.most - before
    # A request that got no answer counts with the time after which the client gave up.
    times = beside["times"] + [honest_client.PATIENCE] * len(beside["failures"])
    print(f"  honest client alone: {percentiles(alone['times'])}")
    print(f"  beside {given.readers} that read nothing of {unread}: {percentiles(times)}")
    print(f"  memory: {before / MEBIBYTE:.0f} MiB, at most {more / MEBIBYTE:.0f} MiB more", flush=True)
    failed = len(alone["failures"] + beside["failures"])
    broken = [f"{failed} requests of the honest client failed"] * bool(failed)
    if percentile(times, 99) > given.late:
        broken.append("honest p99")
    if more > MOST_MEMORY:
        broken.append("memory")
    if not unread:
        broken.append("nobody was answered")
    return broken


def fill_collections(count: int, readers: int, store: Store) -> list[tuple[str, str]]:
    """Create collections of the largest size, all of one account; return pairs of a token and the path of a list."""

    def write() -> list[tuple[str, str]]:
        owner = users.create("collector@label.test", api_access=True, now=Clock().now())
        artist = Artist.create(name="Erik Satie", manager=owner.id, created_at=1).id
        tracks = bulk.ids(Track, 500)
        rows = [(track, f"Track {track}", 1000, 1, DESCRIPTION) for track in tracks]
        bulk.insert(Track, ("id", "name", "duration", "created_at", "description"), rows)
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(track, artist, 0) for track in tracks])
        ids = bulk.ids(Collection, count)
        bulk.insert(
            Collection,
            ("id", "user", "name", "created_at"),
            [(each, owner.id, f"Collection {each}", 1) for each in ids],
        )
        links = [(each, at, track) for each in ids for at, track in enumerate(tracks)]
        bulk.insert(CollectionTrack, ("collection", "position", "track"), links)
        values = [tokens.create(owner, f"reader {number}", now=Clock().now())[1] for number in range(readers)]
        return [(value, "/api/v1/collections") for value in values]

    return store.write(write).result()


def fill_albums(count: int, readers: int, store: Store) -> list[tuple[str, str]]:
    """Create albums of the largest size, all by one artist; return pairs of a token and the path of a list."""

    def write() -> list[tuple[str, str]]:
        owner = users.create("prolific@label.test", api_access=True, now=Clock().now())
        artist = Artist.create(name="Erik Satie", manager=owner.id, created_at=1).id
        for each in bulk.ids(Album, count):
            _album(each, artist, 1000, "x" * (ALBUM // 1000 - TRACK))
        other = Artist.create(name="Amy Beach", created_at=1).id
        for each in bulk.ids(Album, NEWEST):
            _album(each, other, 10, "")
        values = [tokens.create(owner, f"reader {number}", now=Clock().now())[1] for number in range(readers)]
        return [(value, f"/api/v1/artists/{artist}/albums") for value in values]

    return store.write(write).result()


def _album(album: int, artist: int, size: int, description: str) -> None:
    bulk.insert(Album, ("id", "name", "created_at"), [(album, f"Album {album}", 1)])
    bulk.insert(AlbumArtist, ("album", "artist", "position"), [(album, artist, 0)])
    tracks = bulk.ids(Track, size)
    rows = [(track, f"Track {track}", album, 1000, 1, description) for track in tracks]
    bulk.insert(Track, ("id", "name", "album", "duration", "created_at", "description"), rows)
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(track, artist, 0) for track in tracks])


WORLDS: dict[str, Callable[[int, int, Store], list[tuple[str, str]]]] = {
    "collections": fill_collections,
    "albums": fill_albums,
}


if __name__ == "__main__":
    main()
