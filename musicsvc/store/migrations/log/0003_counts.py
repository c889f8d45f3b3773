"""The number of calls per row: more than one if requests without a token are only counted."""


def up(migrator, db):
    db.execute_sql("ALTER TABLE activity ADD COLUMN calls INTEGER NOT NULL DEFAULT 1")
