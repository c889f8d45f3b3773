"""Sessions of signed-in browsers."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class User(Model):
        id = BigAutoField()

        class Meta:
            database = db
            table_name = "account"

    class Session(Model):
        id = BigAutoField(constraints=own_id)
        user = ForeignKeyField(User, on_delete="CASCADE")
        digest = BlobField(unique=True, constraints=[Check("length(digest) = 32")])
        created_at = BigIntegerField()
        last_used_at = BigIntegerField()
        address = TextField()
        agent = TextField()

        class Meta:
            database = db
            table_name = "session"
            strict_tables = sqlite

    db.create_tables([Session], safe=False)
