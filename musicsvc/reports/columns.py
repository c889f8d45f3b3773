"""The columns of tables in files: their names, the headings that people read, the types of their values."""

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The type of the values in a column. Values of all kinds may be None.

    Dates and times are texts in ISO 8601. A PERCENT is a number of percent with one decimal. An INSTANT is a number of
    microseconds since 1970.
    """

    TEXT = "text"
    DATE = "date"
    TIME = "time"
    ID = "id"
    COUNT = "count"
    NUMBER = "number"
    PERCENT = "percent"
    INSTANT = "instant"

    @property
    def is_text(self) -> bool:
        return self in {Kind.TEXT, Kind.DATE, Kind.TIME}


class Column(NamedTuple):
    """A column of a table. `heading`: its name in workbooks. `definition`: the meaning of its values."""

    name: str
    heading: str
    kind: Kind
    definition: str = ""


# fmt: off
COLUMNS = {
    each.name: each
    for each in (
        Column("subject", "Subject", Kind.TEXT, "The name of what is compared."),
        Column("date", "Date", Kind.DATE, "A day in UTC."),
        Column("plays_of_artist_period", "Plays of the artist", Kind.COUNT,
               "Plays in the period of those tracks of the album that credit the artist."),
        Column("track_id", "Track ID", Kind.ID, "The track's id."),
        Column("track", "Track", Kind.TEXT, "The track's name."),
        Column("album_id", "Album ID", Kind.ID, "The album's id."),
        Column("album", "Album", Kind.TEXT, "The name of the album; null for a track without album."),
        Column("artist_id", "Artist ID", Kind.ID, "The artist's id."),
        Column("artist", "Artist", Kind.TEXT, "The artist's name."),
        Column("artists", "Artists", Kind.TEXT, "The names of the artists, separated by '; '."),
        Column("album_artists", "Album artists", Kind.TEXT,
               "The names of the first 50 artists of the album, separated by '; '; null for a track without album."),
        Column("external_id", "External ID", Kind.TEXT, "The track's id in its source system, or null."),
        Column("album_external_id", "Album external ID", Kind.TEXT, "The album's id in its source system, or null."),
        Column("plays", "Plays", Kind.COUNT, "Plays on this day."),
        Column("listeners", "Listeners", Kind.COUNT, "Distinct listeners on this day."),
        Column("likes", "Likes", Kind.COUNT, "Likes given on this day and not withdrawn since."),
        Column("reposts", "Reposts", Kind.COUNT, "Reposts given on this day and not withdrawn since."),
        Column("isrc", "ISRC", Kind.TEXT, "The track's ISRC; null if it has none."),
        Column("upc", "UPC", Kind.TEXT, "The album's UPC, also beside its tracks; null if it has none."),
        Column("label", "Label", Kind.TEXT, "The album's label, also beside its tracks; null if it has none."),
        Column("release_date", "Release date", Kind.DATE,
               "The release date; of a track without one that of its album; null if neither has one."),
    )
}
# fmt: on
