"""The scope of each token: `read`, or `read-write`, which all earlier tokens have."""


def up(migrator, db):
    db.execute_sql("ALTER TABLE token ADD COLUMN scope TEXT NOT NULL DEFAULT 'read-write'")
