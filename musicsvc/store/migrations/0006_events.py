"""Security events: grants and revocations of rights."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class SecurityEvent(Model):
        id = BigAutoField(constraints=own_id)
        at = BigIntegerField(index=True)
        kind = TextField(constraints=[Check("kind <> ''")])
        account_id = BigIntegerField(null=True)
        token_id = BigIntegerField(null=True)
        actor = TextField(constraints=[Check("actor <> ''")])
        reason = TextField(null=True)

        class Meta:
            database = db
            table_name = "security_event"
            strict_tables = sqlite

    db.create_tables([SecurityEvent], safe=False)
    db.execute_sql("CREATE INDEX security_event_account ON security_event (account_id, at)")
    db.execute_sql("CREATE INDEX security_event_token ON security_event (token_id, at)")
