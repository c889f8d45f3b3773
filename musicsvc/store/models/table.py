"""The base class of the models. In all tables, times are microseconds since 1970, prices doubles, ids 64-bit."""

from __future__ import annotations

from typing import Any

from peewee import ForeignKeyField, Model

from musicsvc.store.engine.sql import CurrentDatabase


class Table(Model):
    """The base class of the tables in the main database."""

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


def link(to: type[Model], *, null: bool = False, index: bool = True, unique: bool = False) -> ForeignKeyField[Any]:
    """Return a foreign key to the table `to` that is never loaded lazily: queries must join the tables they need.

    When the row of `to` is deleted, so is this row, or with `null`, its value becomes NULL.
    """
    options: dict[str, Any] = {"null": null, "index": index, "unique": unique, "lazy_load": False, "backref": "+"}
    link: ForeignKeyField[Any] = ForeignKeyField(to, on_delete="SET NULL" if null else "CASCADE", **options)
    return link
