"""Speed of the account search: milliseconds of a whole search in the store, medians.

`python benchmarks/search.py [--accounts 1000000] [--store sqlite|postgres]`
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from musicsvc.store import opening
from musicsvc.store.accounts import user_search, users
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.schema import schema
from tests.support import postgres

ROUNDS = 51
BATCH = 10_000
FIRST = (
    "anna maria john elena david sofia thomas clara daniel marta ryan julia peter chloé andré zoë søren björn łukasz "
    "марина иван наталья ελένη γιώργος ananya arjun priya rahul 美咲 太郎 花子 민준 서연 فاطمة محمد אבי"
)
SYLLABLES = "ka ro mi ter son ber man li va no sch ne el ri do pe tra gor wi len ham ston ford lo re ja cob ski ova"
# Kinds of text, and the texts; the last kinds are the hardest.
TEXTS = {
    "1 character, common": ["a", "m", "s", "t"],
    "1 character, rare": ["太", "ø", "é", "9"],
    "2 characters, common": ["an", "ma", "th", "el"],
    "2 characters, rare": ["美咲", "zz", "qu", "ив"],
    "3 characters, common": ["ann", "mar", "son", "ber"],
    "3 characters, in words only": ["ova", "ski", "sto", "cob"],
    "a first name": ["anna", "david", "zoe", "елена", "наталья"],
    "first and last name": ["anna kam", "maria ter", "john berman", "clara vason"],
    "rare": ["kamiterson", "anna123", "goranna", "schwil"],
    "nobody": ["xqzw", "annaxq", "%", "mariaxx"],
    "common parts, nobody": ["the trio", "ber ter", "annadavid", "son son"],
}


def names(count: int) -> Iterator[str]:
    """Display names as people choose them: names, handles, bands; some of them very common."""
    first, syllables = FIRST.split(), SYLLABLES.split()
    chance = random.Random(1)  # noqa: S311 - the same names in every run
    last = ["".join(chance.choices(syllables, k=chance.choice((2, 2, 3, 3, 4)))) for _ in range(20_000)]
    firsts = chance.choices(first, [(at + 1) ** -0.7 for at in range(len(first))], k=count)
    lasts = chance.choices(last, [(at + 1) ** -0.8 for at in range(len(last))], k=count)
    for one, two in zip(firsts, lasts, strict=True):
        yield chance.choices(
            (
                f"{one.title()} {two.title()}",
                f"{one}.{two[0]}{chance.randrange(10_000)}",
                f"{two}{one}{chance.randrange(100)}",
                f"The {two.title()} {chance.choice(('Band', 'Trio', 'Quartet', 'Sound', 'Project'))}",
            ),
            (55, 20, 15, 10),
        )[0]


def fill(store: Store, count: int) -> None:
    """Make the accounts."""
    batch: list[users.NewUser] = []
    for number, name in enumerate(names(count), 1):
        batch.append(users.NewUser(f"{number}@people.test", name))
        if len(batch) == BATCH or number == count:
            store.write(partial(users.create_many, tuple(batch), now=0)).result()
            batch.clear()


def measure(store: Store) -> None:
    """Print a line per kind of text: the median and the slowest of its texts' medians."""
    for kind, texts in TEXTS.items():
        medians = []
        for text in texts:
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                store.read(partial(user_search.find, text, 10)).result()
                times.append(time.perf_counter() - began)
            medians.append(statistics.median(times) * 1000)
        print(f"{kind:28} {statistics.median(medians):8.2f} ms   slowest {max(medians):8.2f} ms")


@contextmanager
def new_store(kind: str) -> Iterator[str]:
    """Yield the URL of an empty database, which is deleted at the end."""
    if kind == "postgres":
        server = postgres.Server()
        try:
            yield postgres.database_url(server.folder, "postgres")
        finally:
            server.stop()
        return
    with tempfile.TemporaryDirectory() as folder:
        files.create(Path(folder) / "data" / "musicsvc.db")
        yield f"sqlite:///{folder}/data/musicsvc.db"


def main() -> None:
    """Fill a database, then search it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--accounts", type=int, default=1_000_000)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    options = parser.parse_args()
    with new_store(options.store) as url:
        schema.upgrade(url)
        with opening.connect(url) as store:
            began = time.perf_counter()
            fill(store, options.accounts)
            print(f"{options.accounts:,} accounts on {options.store}, created in {time.perf_counter() - began:.0f} s")
            measure(store)


if __name__ == "__main__":
    main()
