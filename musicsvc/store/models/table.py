"""What all tables share. Instants are integers of microseconds, money is a double, ids are 64-bit.

Checks and column types stand in the migrations; `db check` holds the two against each other.
"""

from __future__ import annotations

from typing import Any

from peewee import ForeignKeyField, Model

from musicsvc.store.engine.binding import CurrentDatabase


class Table(Model):
    """What all tables share: the database of the unit that runs."""

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


def link(
    to: type[Model], *, null: bool = False, index: bool = True, on_delete: str = "CASCADE"
) -> ForeignKeyField[Any]:
    """A foreign key that is never followed by itself: what is wanted is joined."""
    options: dict[str, Any] = {"null": null, "index": index, "on_delete": on_delete}
    link: ForeignKeyField[Any] = ForeignKeyField(to, lazy_load=False, backref="+", **options)
    return link
