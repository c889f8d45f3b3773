"""The worlds of the demo: data for tests of clients, from none at all to extreme values."""

from collections.abc import Mapping

from musicsvc.store.engine.store import Store
from musicsvc.store.seeding import edge, fixtures, plays, synthetic
from musicsvc.store.seeding.world import Entries, FixtureSummary

LARGE = 0.5  # scale of the synthetic catalog: 10,000 tracks


def load(store: Store, world: str, *, now: int, token: str) -> Mapping[str, str]:
    """Fill a new database with the data of this world, and return further tokens of the demo's account, by name.

    `token`: the value of the account's first token.
    """

    def fill() -> FixtureSummary:
        if world == "edge":
            edge.start_ids()
        return fixtures.load(now=now, values={"demo": token}, entries=_entries(world))

    created = store.write(fill).result()
    if world == "large":
        synthetic.create(store, LARGE, 1, on_progress=lambda *_: None)
    store.write(lambda: plays.load(now=now)).result()
    return {entry["name"]: created.tokens[entry["key"]] for entry in edge.TOKENS if entry["key"] in created.tokens}


def _entries(world: str) -> Entries:
    entries = fixtures.read()
    if world == "empty":
        return {"account": entries["account"]}
    if world == "one":
        return {"account": entries["account"]} | {kind: entries[kind][:1] for kind in ("artist", "album", "track")}
    return edge.entries(entries["account"]) if world == "edge" else entries
