"""The activity log, on SQLite in a separate file."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class Activity(Model):
        id = BigAutoField(constraints=own_id)
        at = BigIntegerField(index=True)
        request_id = TextField(index=True)
        account_id = BigIntegerField(null=True)
        token_id = BigIntegerField(null=True)
        address = TextField()
        method = TextField()
        route = TextField(null=True)
        resource = TextField(null=True)
        status = IntegerField()
        retry_after = IntegerField(null=True)
        milliseconds = DoubleField()
        size = BigIntegerField()
        judged = BooleanField()

        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    db.create_tables([Activity], safe=False)
    db.execute_sql("CREATE INDEX activity_account ON activity (account_id, at) WHERE account_id IS NOT NULL")
    db.execute_sql("CREATE INDEX activity_token ON activity (token_id, at) WHERE token_id IS NOT NULL")
    db.execute_sql("CREATE INDEX activity_address ON activity (address, at)")
    db.execute_sql("CREATE INDEX activity_refused ON activity (at) WHERE status >= 400")
