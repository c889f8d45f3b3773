"""Imports, the rows that each has made or changed, and the import of each play."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    class ImportRun(Table):
        id = BigAutoField(constraints=[SQL("AUTOINCREMENT")] if sqlite else [])
        kind = TextField(constraints=[Check("kind IN ('catalog', 'plays', 'follows', 'playlists')")])
        file = TextField()
        user = BigIntegerField(null=True, column_name="user_id")
        state = TextField(constraints=[Check("state IN ('running', 'done', 'stopped', 'undoing', 'partly', 'undone')")])
        rows = BigIntegerField(constraints=[SQL("DEFAULT 0")])
        counts = TextField(constraints=[SQL("DEFAULT '{}'")])
        first_slot = BigIntegerField(null=True)
        last_slot = BigIntegerField(null=True)
        started_at = BigIntegerField()
        undone_at = BigIntegerField(null=True)

    class ImportItem(Table):
        run = BigIntegerField(column_name="run_id")
        kind = TextField()
        item = BigIntegerField()
        changes = TextField(null=True)

        class Meta:
            primary_key = CompositeKey("run", "kind", "item")
            indexes = ((("kind", "item"), False),)
            without_rowid = sqlite

    db.create_tables(Table.__subclasses__(), safe=False)
    whole = "INTEGER" if sqlite else "BIGINT"
    db.execute_sql(f"ALTER TABLE play ADD COLUMN import_id {whole}")
    db.execute_sql(f"ALTER TABLE play ADD COLUMN named {whole}")
