"""Plays, listeners, and rollups of plays by day, by month and in total."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    class Listener(Table):
        id = BigAutoField(constraints=[*own_id, Check("id < 4294967296")])
        key = TextField(unique=True)

    class Play(Table):
        slot = BigIntegerField()
        track = BigIntegerField(column_name="track_id")
        listener = BigIntegerField(column_name="listener_id")
        client_key = BlobField()
        played_at = BigIntegerField()
        duration_ms = BigIntegerField(null=True)
        reporter = BigIntegerField(constraints=[SQL("DEFAULT 0")])

        class Meta:
            primary_key = CompositeKey("slot", "track", "listener", "client_key")
            without_rowid = sqlite

    class PlayDay(Table):
        day = IntegerField()
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            primary_key = CompositeKey("day", "kind", "subject")

    class PlayBlock(Table):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        block = IntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            primary_key = CompositeKey("kind", "subject", "block")

    class PlayStretch(Table):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        stretch = IntegerField()
        plays = BigIntegerField()
        listeners = BlobField()

        class Meta:
            primary_key = CompositeKey("kind", "subject", "stretch")

    class PlayMark(Table):
        id = IntegerField(primary_key=True, constraints=[Check("id = 1")])
        block = IntegerField()
        kind = IntegerField()
        subject = BigIntegerField()
        kept_from = IntegerField()
        stretch = IntegerField(constraints=[SQL("DEFAULT 0")])

    class TrackPlays(Table):
        track = BigIntegerField(primary_key=True, column_name="track_id")
        plays = BigIntegerField()

    db.create_tables(Table.__subclasses__(), safe=False)
    PlayMark.insert(id=1, block=0, kind=1, subject=0, kept_from=0).execute()
    db.execute_sql("CREATE UNIQUE INDEX play_client_key ON play (client_key) WHERE length(client_key) > 0")
