"""List, read and create tracks, and read the status of their fingerprints."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.catalog import TrackEdit, TrackIn
from musicsvc.server.schemas.track_lists import TrackPages
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import fields, track_lists, tracks
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import creations, deletions, edits


def index(query: TrackPages, answer: AnswerBuilder) -> JSON:
    """List all tracks, or those that match the filters, newest first."""
    return answer.paged(track_lists.find(query.to_filters(), query.to_page()), shapes.track_full, tracks.complete)


def show(subject: TrackRow, caller: Identity | None) -> JSON:
    """Read a track."""
    return ok(track=shapes.track_full(subject) if caller else shapes.track_public(subject))


def create(body: TrackIn, caller: Identity, now: int) -> JSON:
    """Create a track; the caller must manage one of its artists."""
    track = creations.create_track(body.model_dump(exclude_none=True), now=now, actor=caller)
    return ok(track=shapes.track_full(track))


def edit(subject: TrackRow, body: TrackEdit, caller: Identity, now: int) -> JSON:
    """Change a track; only the fields that are sent change."""
    changes = fields.changes("track", body.model_dump(exclude_unset=True))
    track = edits.edit_track(subject, changes, now=now, caller=caller, actor="api")
    return ok(track=shapes.track_full(track))


def delete(subject: TrackRow, caller: Identity, now: int) -> JSON:
    """Delete a track; its plays still count for its album and artists."""
    deletions.delete(subject, now=now, account=caller.user_id, actor="api")
    return ok()


def fingerprint_status(subject: TrackRow) -> JSON:
    """Read the status of a track's fingerprint."""
    return ok(fingerprint_status=subject.fingerprint_status)
