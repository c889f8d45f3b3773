"""An index of the sessions that were unused for longest, which each sign-in deletes."""


def up(migrator, db):
    db.execute_sql("CREATE INDEX session_last_used_at ON session (last_used_at)")
