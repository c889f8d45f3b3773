"""Number an object once that a transaction adds with its parts, and divide long lists by one trigger. For SQLite only.

Programs of 0.1.0 delete the notes of names before each commit, too.
"""

from peewee import SqliteDatabase

from musicsvc.store.catalog.change_triggers import make_triggers
from musicsvc.store.migrations.baseline.list_blocks import DIVIDE, LISTS

oldest_program = "0.1.0"

# Each row that is added to a long list changes a block, which asked 17 triggers whether it is too large or empty.
DIVIDE_ANY = """
    CREATE TRIGGER list_block_divide AFTER UPDATE OF size ON list_block
    WHEN NEW.size > 4096 OR (NEW.size = 0 AND (NEW.first_key, NEW.first_id) > (0, 0)) BEGIN
        DELETE FROM list_block WHERE list = NEW.list AND owner = NEW.owner
            AND first_key = NEW.first_key AND first_id = NEW.first_id;
        {divide}
    END
"""


def up(migrator, db):
    if not isinstance(db, SqliteDatabase):
        return
    db.execute_sql("CREATE INDEX name_change_added ON name_change (id, source) WHERE name IS NULL")
    make_triggers(db)
    db.execute_sql("DROP TRIGGER list_block_empty")
    divide = ""
    for number, (table, owner, key, row_id, _) in LISTS.items():
        db.execute_sql(f"DROP TRIGGER list_{number}_divide")
        statement = f"INSERT {DIVIDE};\n".replace("WHERE <owner>", "WHERE <block>.list = <list> AND <owner>")
        values = {"table": table, "owner": owner, "key": key, "id": row_id, "list": str(number), "block": "NEW"}
        for name, value in values.items():
            statement = statement.replace(f"<{name}>", value)
        divide += statement
    db.execute_sql(DIVIDE_ANY.format(divide=divide))
