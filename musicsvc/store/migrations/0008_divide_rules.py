"""Keep the rules by which accounts divide the columns of imported tables at signs between names.

Programs of 0.1.0 divide nothing, and leave the rules of deleted accounts, whose numbers no account gets again.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"

TABLE = """
    CREATE TABLE divide_rule (
        user_id {number} NOT NULL, heading TEXT NOT NULL, signs TEXT NOT NULL, set_at {number} NOT NULL,
        PRIMARY KEY (user_id, heading)
    ) {options}
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    number, options = ("INTEGER", "WITHOUT ROWID, STRICT") if sqlite else ("BIGINT", "")
    db.execute_sql(TABLE.format(number=number, options=options))
