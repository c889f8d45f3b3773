"""CPU time of `musicsvc import catalog` into a new database.

    python benchmarks/imports.py [--file FILE [--columns track_name=track …]] [--rows 32833] [--rounds 3]

Without a file, one is made up: each row has a track of an album, an artist, a genre and a date, in random order.
"""

import csv
import random
import tempfile
from functools import partial
from pathlib import Path

import harness
from harness import Checkout

HEAD = (
    "external_id",
    "track",
    "artist",
    "album",
    "album_external_id",
    "release_date",
    "duration_ms",
    "genre",
    "tags",
    "bpm",
)


def write(file: Path, rows: int) -> None:
    """Write a catalog: a track in eight repeats, as one of several playlists would."""
    chance = random.Random(1)
    tracks = [(n, n % max(1, rows * 2 // 3), n % max(1, rows // 3)) for n in range(rows)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.writer(opened)
        out.writerow(HEAD)
        for _ in range(rows):
            track, album, artist = tracks[int(chance.random() * rows * 7 / 8)]
            date = f"{1960 + track % 60}-0{1 + track % 9}-1{track % 10}"
            names = (f"Song {track}", f"Artist {artist}", f"Album {album}", f"album-{album}")
            out.writerow(
                (f"track-{track}", *names, date, 180_000 + track, f"Genre {artist % 6}", f"tag {artist % 24}", 90)
            )


def measure(checkout: Checkout, folder: Path, file: Path, columns: list[str], turn: int) -> float:
    """Return the CPU seconds of an import into a new database."""
    base = harness.database(checkout, folder, "small", turn)
    return harness.import_catalog(checkout, base.url, file, columns)


def main() -> None:
    """Measure and print."""
    parser = harness.parser(__doc__, rounds=3, rows=32_833)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--columns", nargs="*", default=[], help="its columns, as for `import catalog --map`")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = given.file.resolve() if given.file else folder / "catalog.csv"
        if not given.file:
            write(file, given.rows)
        checkouts = {each.label(): each for each in harness.checkouts(given)}
        table = harness.Table("import", list(checkouts), unit="CPU s", digits=2)
        work = {name: partial(measure, each, folder, file, given.columns) for name, each in checkouts.items()}
        table.row(given.file.name if given.file else f"{given.rows:,} rows", harness.in_turn(given.rounds, work))


if __name__ == "__main__":
    main()
