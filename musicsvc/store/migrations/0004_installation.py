"""The secret of the installation, from which other keys are derived."""

import secrets

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class Secret(Model):
        name = TextField(primary_key=True)
        value = BlobField(constraints=[Check("length(value) >= 32")])

        class Meta:
            database = db
            table_name = "secret"
            strict_tables = sqlite

    db.create_tables([Secret], safe=False)
    Secret.create(name="installation", value=secrets.token_bytes(32))
