"""Count the plays that accounts report of their own listening by day, for the rule that limits them.

Programs of 0.1.0 neither count nor limit them.
"""

from peewee import SqliteDatabase

oldest_program = "0.1.0"

TABLE = """
    CREATE TABLE own_play_day (
        day {number} NOT NULL, listener_id {number} NOT NULL, plays {number} NOT NULL, PRIMARY KEY (day, listener_id)
    ) {options}
"""
# Own plays are accepted for 14 days. No play is of a day after that of the newest one.
FILL = """
    INSERT INTO own_play_day (day, listener_id, plays)
    SELECT play.slot / 2880, play.listener_id, count(*) FROM play JOIN listener ON listener.id = play.listener_id
    WHERE play.slot >= (SELECT max(slot) / 2880 - 15 FROM play) * 2880 AND play.reporter > 0
        AND listener.key = 'account:' || play.reporter
    GROUP BY 1, 2
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    number, options = ("INTEGER", "WITHOUT ROWID, STRICT") if sqlite else ("BIGINT", "")
    db.execute_sql(TABLE.format(number=number, options=options))
    db.execute_sql(FILL)
