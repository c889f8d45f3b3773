"""What belongs to the installation as a whole."""

from __future__ import annotations

from peewee import BlobField, TextField

from musicsvc.store.models.table import Table


class Secret(Table):
    """A random key of the installation, the same for all its nodes."""

    name = TextField(primary_key=True)
    value = BlobField()
