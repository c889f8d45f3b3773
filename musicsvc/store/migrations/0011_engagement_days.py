"""Likes and reposts of tracks, albums and artists by day, filled from those that exist."""

from peewee import *

FILL = """
    INSERT INTO engagement_day (kind, subject, day, likes, reposts)
    SELECT s.kind, s.subject, g.created_at / 86400000000, SUM(g.likes), SUM(g.reposts)
    FROM (
        SELECT track_id, created_at, 1 AS likes, 0 AS reposts FROM track_like
        UNION ALL SELECT track_id, created_at, 0, 1 FROM track_repost
    ) AS g JOIN (
        SELECT 1 AS kind, id AS subject, id AS track_id FROM track
        UNION ALL SELECT 2, album_id, id FROM track WHERE album_id IS NOT NULL
        UNION ALL SELECT 3, artist_id, track_id FROM track_artist
    ) AS s ON s.track_id = g.track_id
    GROUP BY s.kind, s.subject, g.created_at / 86400000000
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)

    class EngagementDay(Model):
        kind = IntegerField(constraints=[Check("kind IN (1, 2, 3)")])
        subject = BigIntegerField()
        day = IntegerField()
        likes = BigIntegerField()
        reposts = BigIntegerField()

        class Meta:
            database = db
            table_name = "engagement_day"
            strict_tables = sqlite
            without_rowid = sqlite
            primary_key = CompositeKey("kind", "subject", "day")

    db.create_tables([EngagementDay], safe=False)
    db.execute_sql(FILL)
