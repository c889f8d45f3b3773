"""An index of the plays of each track on each day (2,880 slots of 30 seconds), in order of time."""


def up(migrator, db):
    db.execute_sql("CREATE INDEX play_of_day ON play ((slot / 2880), track_id, slot, listener_id)")
