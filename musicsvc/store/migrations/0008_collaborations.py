"""Collaborators and open invitations of playlists that are not collaborative end for good."""


def up(migrator, db):
    db.execute_sql(
        "DELETE FROM playlist_invite WHERE state IN ('pending', 'accepted')"
        " AND playlist_id IN (SELECT id FROM playlist WHERE NOT collaborative)"
    )
