"""The base class of the tables. Times are microseconds since 1970, prices are doubles, ids have 64 bits."""

from __future__ import annotations

from typing import Any

from peewee import ForeignKeyField, Model

from musicsvc.store.engine.binding import CurrentDatabase


class Table(Model):
    """The base class of the tables in the main database."""

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


def link(
    to: type[Model], *, null: bool = False, index: bool = True, on_delete: str = "CASCADE"
) -> ForeignKeyField[Any]:
    """Return a foreign key that is never loaded lazily. Queries must join the tables that they need."""
    options: dict[str, Any] = {"null": null, "index": index, "on_delete": on_delete}
    link: ForeignKeyField[Any] = ForeignKeyField(to, lazy_load=False, backref="+", **options)
    return link
