"""Contents of the figures page of a track, album or artist, with the same figures as in the API."""

from collections.abc import Sequence
from typing import NamedTuple

from musicsvc.store.dashboards import containing
from musicsvc.store.dashboards.containing import Containing
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import charts, collaborations, export_rows, figures, rankings, realtime
from musicsvc.store.insights.charts import CurvePoint, Interval
from musicsvc.store.insights.collaborations import Collaborations
from musicsvc.store.insights.figures import ArtistCounts, Figures
from musicsvc.store.insights.listening import DEFAULT_DAYS, first_plays, listening, local_hours, milestones, releases
from musicsvc.store.insights.listening.listening import Listening
from musicsvc.store.insights.listening.local_hours import IN_UTC, LocalHours
from musicsvc.store.insights.listening.milestones import Milestones
from musicsvc.store.insights.listening.releases import Release
from musicsvc.store.insights.rankings import Ranked
from musicsvc.store.insights.realtime import Realtime
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

# The artists of a track or album that an account manages, and the album of a track.
MANAGED_ARTISTS = """
    SELECT a.id, a.name FROM {kind}_artist l JOIN artist a ON a.id = l.artist_id
    WHERE l.{kind}_id = ? AND a.manager_id = ? ORDER BY l.position
"""
IMAGES = {
    TRACK: "SELECT COALESCE(t.image, a.image) FROM track t LEFT JOIN album a ON a.id = t.album_id WHERE t.id = ?",
    ALBUM: "SELECT image FROM album WHERE id = ?",
    ARTIST: "SELECT image_small FROM artist WHERE id = ?",
}
ALBUM_OF_TRACK = """
    SELECT b.id, b.name FROM track t JOIN album b ON b.id = t.album_id WHERE t.id = ? AND EXISTS (
        SELECT 1 FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE l.album_id = b.id AND a.manager_id = ?
    )
"""
# The newest other albums, by release date, of those artists of an album that an account manages.
OTHER_ALBUMS = """
    SELECT DISTINCT b.id, b.release_date FROM album_artist mine JOIN artist a ON a.id = mine.artist_id
    JOIN album_artist l ON l.artist_id = a.id JOIN album b ON b.id = l.album_id
    WHERE mine.album_id = ? AND a.manager_id = ? AND b.id <> mine.album_id AND b.release_date IS NOT NULL
    ORDER BY b.release_date DESC, b.id DESC LIMIT 3
"""


class Related(NamedTuple):
    """A track, album or artist that a figures page links to."""

    subject: Subject
    name: str
    artists: Sequence[str] = ()


class Dashboard(NamedTuple):
    """Figures of a track, album, artist or account (`subject`) in a window.

    `curve`: plays and listeners by `interval`. `before`: daily plays of the earlier window.
    `first_plays`: the day of the first play, if pages show it instead of the growth.
    `artists`: the names of the artists of a track or album.
    `tracks`: all tracks of an album, or an artist's most played tracks. `albums`: an artist's most played albums.
    `releases`: an album, and the albums it is compared with. Fields that do not apply to the subject are None or empty.
    """

    subject: Subject
    name: str
    figures: Figures
    interval: Interval
    curve: Sequence[CurvePoint]
    before: Sequence[int]
    listening: Listening
    hours: LocalHours
    first_plays: int | None = None
    artists: Sequence[str] = ()
    tracks: Sequence[Ranked] = ()
    albums: Sequence[Ranked] = ()
    counts: ArtistCounts | None = None
    collaborations: Collaborations | None = None
    realtime: Realtime | None = None
    milestones: Milestones | None = None
    releases: Sequence[Release] = ()
    related: Sequence[Related] = ()
    own_plays: int | None = None
    containing: Containing | None = None
    image: str | None = None


def report(subject: Subject, window: Window, interval: Interval | None = None) -> Dashboard:
    """Return the figures that a shared report of a track, album or artist shows. Call in a transaction."""
    before = window.before
    interval = interval or charts.interval_of(window)
    heard, hours = listening.build(subject, window)
    found = Dashboard(
        subject,
        figures.name(subject),
        figures.figures(subject, window),
        interval,
        charts.curve(subject, window, interval),
        charts.plays_by_day(subject, range(before.first, min(before.first + window.days, window.first))),
        heard,
        LocalHours(hours),
        first_plays.instead_of_growth(window, first_plays.of_subject(subject)),
        export_rows.authors(subject.kind, [subject.id]).get(subject.id, ()),
    )
    if subject.kind == ALBUM:
        return found._replace(tracks=rankings.tracks_of_album(subject.id, window))
    if subject.kind == ARTIST:
        return found._replace(
            tracks=rankings.tracks_of_artist(subject.id, window),
            albums=rankings.albums_of_artist(subject.id, window),
            counts=figures.artist_counts(subject.id),
        )
    return found


def build(
    subject: Subject,
    window: Window,
    user_id: int,
    now: int,
    *,
    zone: str = IN_UTC,
    interval: Interval | None = None,
) -> Dashboard:
    """Return the figures that the page shows to an account, with links to other pages that the account may see.

    `zone`: the time zone of the hours of the week. `interval`: of the chart.
    """
    own = Reader(window, all_time=False).own_plays(*subject)
    found = report(subject, window, interval)._replace(
        milestones=milestones.build(subject),
        own_plays=own,
        containing=containing.load(subject),
        image=_image(subject),
    )
    if zone != IN_UTC:
        found = found._replace(hours=local_hours.load(subject, window, zone))
    if subject.kind == ARTIST:
        return found._replace(collaborations=collaborations.load(subject.id))
    found = found._replace(related=_related(subject, user_id))
    if subject.kind == TRACK:
        return found._replace(realtime=realtime.load(subject, now))
    others = [each for each, _ in fetch(OTHER_ALBUMS, subject.id, user_id)]
    return found._replace(releases=releases.build([subject.id, *others], DEFAULT_DAYS, now))


def _image(subject: Subject) -> str | None:
    """Return the address of the picture that was given for a track, album or artist. A track has that of its album."""
    for (image,) in fetch(IMAGES[subject.kind], subject.id):
        return None if image is None else str(image)
    return None


def _related(subject: Subject, user_id: int) -> list[Related]:
    """Return those artists of a track or album, and the album of a track, that the account manages."""
    query = MANAGED_ARTISTS.format(kind=figures.noun(subject))
    found = [Related(Subject(ARTIST, each), name) for each, name in fetch(query, subject.id, user_id)]
    if subject.kind == TRACK:
        albums = fetch(ALBUM_OF_TRACK, subject.id, user_id)
        found += [Related(Subject(ALBUM, each), name) for each, name in albums]
    return found
