"""Keep what an account is for: music, or a program that uses the API. Accounts of before have not chosen."""

oldest_program = "0.1.0"


def up(migrator, db):
    db.execute_sql("ALTER TABLE account ADD COLUMN purpose TEXT CHECK (purpose IN ('music', 'program'))")
