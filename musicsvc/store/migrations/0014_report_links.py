"""Links that show the figures of a track, album or artist to anybody."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class Account(Model):
        id = BigAutoField()

        class Meta:
            database = db
            table_name = "account"

    class ReportLink(Model):
        id = BigAutoField(constraints=own_id)
        user = ForeignKeyField(Account, on_delete="CASCADE")
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        first_day = IntegerField()
        end_day = IntegerField(constraints=[Check("end_day > first_day")])
        created_at = BigIntegerField()
        expires_at = BigIntegerField()

        class Meta:
            database = db
            table_name = "report_link"
            strict_tables = sqlite

    db.create_tables([ReportLink], safe=False)
