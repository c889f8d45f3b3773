"""Store the ids of Spotify and MusicBrainz bare, unless another row of the manager (a playlist's owner) has the id.

The others keep theirs, and `twins` proposes to merge them. Older programs go on storing ids as they find them.
"""

from peewee import CTE, SQL, Table, ValuesList, fn

from musicsvc.store.catalog import external_ids
from musicsvc.store.schema import schema

oldest_program = "0.1.0"

ROWS = 1_000  # at a time
# Table, the column beside which an id is unique, the table with the ids that are taken, condition, what the ids are of.
TABLES = (
    ("track", "imported_for", "track", "TRUE", "track"),
    ("album", "imported_for", "album", "TRUE", "album"),
    ("playlist", "owner_id", "playlist", "TRUE", "playlist"),
    ("merged", "imported_for", "track", "kind = 1", "track"),
    ("merged", "imported_for", "album", "kind = 2", "album"),
)


def up(migrator, db):
    for done, (name, scope, taken, condition, noun) in enumerate(TABLES):
        schema.report_progress(done, len(TABLES))
        table, other = (Table(each, ("id", "external_id", scope)).bind(db) for each in (name, taken))
        other = other.alias("other")
        text, long = table.external_id, fn.length(table.external_id) >= external_ids.MBID_LENGTH
        written = table.select(table.id, text, getattr(table, scope)).where(
            SQL(condition), long | text.contains(":") | text.contains("/")
        )
        last = 0
        while rows := list(written.where(table.id > last).order_by(table.id).limit(ROWS).tuples()):
            last = rows[-1][0]
            changes = {}
            for row_id, former, manager in rows:
                bare = external_ids.bare(former, noun)
                if bare != former:  # several merged rows may have one id
                    changes.setdefault(row_id if name == "merged" else (bare, manager), (row_id, bare))
            if changes:
                given = CTE("given", ValuesList(list(changes.values())), columns=("row", "bare"))
                of_manager = getattr(other, scope) == getattr(table, scope)
                same = other.select(SQL("1")).where(other.external_id == given.c.bare, of_manager)
                update = table.update({table.external_id: given.c.bare}).from_(given).with_cte(given)
                update.where(table.id == given.c.row, ~fn.EXISTS(same)).execute()
