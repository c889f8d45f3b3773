"""One-time links to set a password, and the account that acted in a security event."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class Account(Model):
        id = BigAutoField()

        class Meta:
            database = db
            table_name = "account"

    class PasswordLink(Model):
        digest = BlobField(primary_key=True)
        user = ForeignKeyField(Account, unique=True, on_delete="CASCADE")
        created_at = BigIntegerField()
        expires_at = BigIntegerField()

        class Meta:
            database = db
            table_name = "password_link"
            strict_tables = sqlite
            without_rowid = sqlite

    db.create_tables([PasswordLink], safe=False)
    db.execute_sql(f"ALTER TABLE security_event ADD COLUMN actor_id {'INTEGER' if sqlite else 'BIGINT'}")
