"""The table of random keys that all nodes of the installation share."""

from peewee import BlobField, TextField

from musicsvc.store.models.table import Table


class Secret(Table):
    """A random key that all nodes of the installation share."""

    name = TextField(primary_key=True)
    value = BlobField()
