"""Contents of the figures page of a track, album or artist, with the same figures as in the API."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from peewee import JOIN, Select, fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import belonging, charts, collaborations, export_rows, figures, rankings, realtime
from musicsvc.store.insights.charts import CurvePoint, Interval
from musicsvc.store.insights.collaborations import Collaborations
from musicsvc.store.insights.export_rows import Titled
from musicsvc.store.insights.figures import ArtistCounts, Figures
from musicsvc.store.insights.listening import DEFAULT_DAYS, listening, local_hours, milestones, releases
from musicsvc.store.insights.listening.listening import Listening
from musicsvc.store.insights.listening.local_hours import IN_UTC, LocalHours
from musicsvc.store.insights.listening.milestones import Milestones
from musicsvc.store.insights.listening.releases import Release
from musicsvc.store.insights.rankings import Ranked
from musicsvc.store.insights.realtime import Realtime
from musicsvc.store.models import Album, AlbumArtist, Artist, CollectionTrack, Playlist, PlaylistTrack, Track
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

MOST_NAMES = 20
OTHER_ALBUMS = 3  # that the releases of an album are compared with


class Containing(NamedTuple):
    """Numbers of playlists, of public ones among them, of collections, and of likes that were not withdrawn.

    Of an album or artist, all that contain one of its tracks. `names`: those of the newest public playlists that
    contain a track; of others nothing but their number is shown.
    """

    playlists: int
    public: int
    collections: int
    likes: int
    names: tuple[str, ...] = ()


class Dashboard(NamedTuple):
    """Figures of a track, album, artist or account (`subject`) in a window.

    `curve`: plays and listeners by `interval`. `before`: daily plays of the earlier window.
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
    artists: Sequence[str] = ()
    tracks: Sequence[Ranked] = ()
    albums: Sequence[Ranked] = ()
    counts: ArtistCounts | None = None
    collaborations: Collaborations | None = None
    realtime: Realtime | None = None
    milestones: Milestones | None = None
    releases: Sequence[Release] = ()
    related: Sequence[Titled] = ()  # what the page links to
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
        [
            plays
            for plays, _ in charts.by_day(subject, range(before.first, min(before.first + window.days, window.first)))
        ],
        heard,
        LocalHours(hours),
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
    zone: str,
    interval: Interval | None,
) -> Dashboard:
    """Return the figures that the page shows to an account, with links to other pages that the account may see.

    `zone`: the time zone of the hours of the week. `interval`: of the chart.
    """
    own = Reader(window, all_time=False).own_plays(*subject)
    found = report(subject, window, interval)._replace(
        milestones=milestones.build(subject),
        own_plays=own,
        containing=containing(subject),
        image=_image(subject),
    )
    if zone != IN_UTC:
        found = found._replace(hours=local_hours.load(subject, window, zone))
    if subject.kind == ARTIST:
        return found._replace(collaborations=collaborations.load(subject.id))
    found = found._replace(related=_related(subject, user_id))
    if subject.kind == TRACK:
        return found._replace(realtime=realtime.load(subject, now))
    others = [each for each, _ in _other_albums(subject.id, user_id)]
    return found._replace(releases=releases.build([subject.id, *others], DEFAULT_DAYS, now))


def containing(subject: Subject) -> Containing:
    """Return what contains a track, album or artist."""
    ((playlists, public, collections, likes),) = _containing(subject.id, kind=subject.kind)
    found = Containing(playlists, public, collections, int(likes))
    if subject.kind != TRACK:
        return found
    return found._replace(names=tuple(name for (name,) in _public(subject.id, MOST_NAMES)))


@compiled
def _containing(subject: int, *, kind: int) -> Any:
    tracks = belonging.members(subject, kind, TRACK)
    playlists = PlaylistTrack.select(fn.COUNT(PlaylistTrack.playlist.distinct())).where(PlaylistTrack.track.in_(tracks))
    listed = CollectionTrack.select(fn.COUNT(CollectionTrack.collection.distinct()))
    likes = Track.select(fn.COALESCE(fn.SUM(Track.likes_count), 0)).where(Track.id.in_(tracks))
    public = playlists.join(Playlist).where(Playlist.public)
    return Select(columns=[playlists, public, listed.where(CollectionTrack.track.in_(tracks)), likes])


@compiled
def _public(track: int, most: int) -> Any:
    """Select the names of the newest public playlists that contain a track."""
    listed = PlaylistTrack.select(PlaylistTrack.playlist).where(PlaylistTrack.track == track)
    query = Playlist.select(Playlist.name).where(Playlist.public, Playlist.id.in_(listed))
    return query.order_by(Playlist.id.desc()).limit(most)


def _image(subject: Subject) -> str | None:
    """Return the address of the picture that was given for a track, album or artist. A track has that of its album."""
    for (image,) in _images(subject.id, kind=subject.kind):
        return None if image is None else str(image)
    return None


@compiled
def _images(subject: int, *, kind: int) -> Any:
    if kind == TRACK:
        query = Track.select(fn.COALESCE(Track.image, Album.image)).join(Album, JOIN.LEFT_OUTER)
        return query.where(Track.id == subject)
    row = belonging.ROWS[kind]
    return row.select(row.image if kind == ALBUM else row.image_small).where(row.id == subject)


def _related(subject: Subject, user_id: int) -> list[Titled]:
    """Return those artists of a track or album, and the album of a track, that the account manages."""
    found = [Titled(Subject(ARTIST, each), name) for each, name in _artists(subject.id, user_id, kind=subject.kind)]
    if subject.kind == TRACK:
        found += [Titled(Subject(ALBUM, each), name) for each, name in _album_of_track(subject.id, user_id)]
    return found


@compiled
def _artists(subject: int, user_id: int, *, kind: int) -> Any:
    """Select the artists of a track or album that the account manages."""
    credited = belonging.CREDITED[kind]
    query = credited.model.select(Artist.id, Artist.name).join(Artist)
    return query.where(credited == subject, managed_by(user_id)).order_by(credited.model.position)


@compiled
def _album_of_track(track: int, user_id: int) -> Any:
    query = Track.select(Album.id, Album.name).join(Album)
    return query.where(Track.id == track, belonging.is_managed(ALBUM, Album.id, user_id))


@compiled
def _other_albums(album: int, user_id: int) -> Any:
    """Select the newest other albums, by release date, of those artists of an album that an account manages."""
    mine = AlbumArtist.alias()
    artists = mine.select(mine.artist).join(Artist).where(mine.album == album, managed_by(user_id))
    query = AlbumArtist.select(Album.id, Album.release_date).distinct().join(Album)
    query = query.where(AlbumArtist.artist.in_(artists), Album.id != album, ~Album.release_date.is_null())
    return query.order_by(Album.release_date.desc(), Album.id.desc()).limit(OTHER_ALBUMS)
