"""Plays, listeners, and the plays per day and of all time."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite
            without_rowid = sqlite

    class Track(Model):
        id = BigAutoField()

        class Meta:
            database = db
            table_name = "track"

    class Listener(Table):
        id = BigAutoField(constraints=[*own_id, Check("id < 4294967296")])
        key = TextField(unique=True)

        class Meta:
            without_rowid = False

    class Play(Table):
        track = ForeignKeyField(Track, index=False, on_delete="CASCADE")
        slot = BigIntegerField()
        listener = ForeignKeyField(Listener, index=False)
        client_key = BlobField()
        played_at = BigIntegerField()
        duration_ms = BigIntegerField(null=True)
        reporter = BigIntegerField(constraints=[SQL("DEFAULT 0")])

        class Meta:
            primary_key = CompositeKey("track", "slot", "listener", "client_key")

    class PlayDay(Table):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        day = IntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            primary_key = CompositeKey("kind", "subject", "day")

    class PlayTotal(Table):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            primary_key = CompositeKey("kind", "subject")

    db.create_tables(Table.__subclasses__(), safe=False)
    db.execute_sql("CREATE UNIQUE INDEX play_client_key ON play (client_key) WHERE length(client_key) > 0")
