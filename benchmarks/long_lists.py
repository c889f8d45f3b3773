"""Times of the first, the middle and the last page of long lists, on SQLite and PostgreSQL.

    python benchmarks/long_lists.py [--rows 10000 100000 1000000] [--store sqlite|postgres]

`--rows` albums, tracks of one artist, playlists of one account and comments on one track; a quarter as many artists and
a tenth as many genres. Answers are not cached. Pages of 20 rows are requested in turn over one connection.
"""

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from functools import partial
from http import HTTPStatus
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from deep_pages import store_url
from network_server import Server, running

from musicsvc.store.engine import list_blocks, sql
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.store import Store

PER_PAGE, ROUNDS = 20, 15
NUMBERS = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT i FROM n) n"
ARTIST, TRACK = 900_001, 900_001
FILL = """
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
LISTS = {
    "albums": "albums",
    "artists": "artists",
    "tracks of an artist": f"artists/{ARTIST}/tracks",
    "genres": "genres",
    "playlists": "playlists",
    "comments": f"tracks/{TRACK}/comments",
}


def main() -> None:
    """Measure and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--store", choices=["sqlite", "postgres"], nargs="+", default=["sqlite", "postgres"])
    given = options.parse_args()
    print("| list | store | rows | first, ms | middle, ms | last, ms | last / first |\n|---|---|---|---|---|---|---|")
    for kind in given.store:
        for rows in given.rows:
            with tempfile.TemporaryDirectory() as folder, store_url(kind) as url:
                settings = {"answer_cache": 0}
                with running(Path(folder) / "lists", settings, tls=False, url=url, fill=partial(fill, rows)) as server:
                    for name, path in LISTS.items():
                        measure(server, name, path, kind)


def fill(rows: int, store: Store) -> None:
    """Create the rows. On PostgreSQL the lists are counted afterwards, which is faster."""

    def add() -> None:
        if not is_sqlite():
            sql.run("SET LOCAL session_replication_role = replica")
        for statement in FILL.format(all=numbers(rows), quarter=numbers(rows // 4), tenth=numbers(rows // 10)).split(
            ";"
        ):
            sql.run(statement)
        if not is_sqlite():
            list_blocks.rebuild()

    store.write(add).result()
    store.write(lambda: sql.run("ANALYZE")).result()


def numbers(count: int) -> str:
    return NUMBERS.format(count=count) if is_sqlite() else f"generate_series(1, {count}) n (i)"


def measure(server: Server, name: str, path: str, kind: str) -> None:
    """Request three pages in turn and print a row of the table."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    total = int(request(connection, server, path, 1)[1].partition(b'"total":')[2].partition(b",")[0])
    pages = {"first": 1, "middle": total // PER_PAGE // 2, "last": -(-total // PER_PAGE)}
    times: dict[str, list[float]] = {place: [] for place in pages}
    for _ in range(ROUNDS):
        for place, page in pages.items():
            times[place].append(request(connection, server, path, page)[0] * 1000)
    connection.close()
    first, middle, last = (statistics.median(times[place]) for place in pages)
    print(f"| {name} | {kind} | {total:,} | {first:.2f} | {middle:.2f} | {last:.2f} | {last / first:.2f} |", flush=True)


def request(connection: http.client.HTTPConnection, server: Server, path: str, page: int) -> tuple[float, bytes]:
    """Return the seconds of an answer, and its body."""
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {server.token}"}
    connection.request("GET", f"/api/v1/{path}?per_page={PER_PAGE}&page={page}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == HTTPStatus.OK, body
    return time.perf_counter() - began, body


if __name__ == "__main__":
    main()
