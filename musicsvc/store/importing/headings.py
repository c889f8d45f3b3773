"""Headings of columns in the exports of other services and in sheets that people write, for each field.

They are those of Spotify for Artists and Spotify's catalog data (`track_name`), Exportify, DistroKid, TuneCore, CD
Baby, Bandcamp, Believe, Beatport, MusicBrainz and MusicBrainz Picard, Mp3tag, iTunes, and of ordinary sheets in
English and nine other languages. docs/import.md names the pages that describe them. Of
several columns for a field, the one named first here is read.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from musicsvc.errors import Failure
from musicsvc.store.catalog.fields import COLUMNS
from musicsvc.store.importing.cells import durations, times
from musicsvc.store.importing.files.records import FIGURE, LONGEST_HEADING
from musicsvc.wording import cut

# Columns of plays with the date, and with the time of day, that may stand side by side.
DATES = "date, date played, play date, air date, broadcast date, start date, date d'écoute, date de diffusion"
DATES += ", datum, sendedatum, fecha, data, dato, 日付"
CLOCKS = "time, time played, play time, air time, broadcast time, start time"
CLOCKS += ", zeit, uhrzeit, sendezeit, hora, heure, ora, 時刻"
OF_DAY = {"uhrzeit", "sendezeit", "airtime", "broadcasttime", "timeplayed", "starttime", "時刻"}  # are no lengths
# Of releases, likewise.
YEARS = "year, release year, released year, jahr, erscheinungsjahr, año, ano, année, anno"
MONTHS = "month, release month, released month, monat, mes, mese, mês, mois"
DAYS = "day, release day, released day, tag, día, dia, giorno, jour"
CATALOG = {name: column.headings for name, column in COLUMNS.items()}
PLAYS = {name: CATALOG[name] for name in ("artist", "featured_artist", "track", "album", "isrc")} | {
    "external_id": "spotify track uri, track uri, spotify id, recording mbid, recording gid, mbz recording id",
    "listener": (
        "listener id, user, user name, user id, account, account id, customer id, subscriber id, station, callsign,"
        " call sign, hörer, nutzer"
    ),
    "played_at": (
        "played, listened at, scrobbled at, time stamp, time, date time, uts, ts, unix time, unix timestamp,"
        " date played, playback start time, start time, started at, submission time, entry date, date,"
        f" airtime, date time played, gespielt am, zeitpunkt, zeitstempel, start, {CLOCKS}, 再生日時, {DATES}"
    ),
    "listened_ms": (
        "ms played, seconds played, minutes played, duration played, listened, time listened, listening time,"
        " stream duration ms, duration listened, consumption duration, duration ms, duration"
    ),
    "client_id": "unique id, play id, scrobble id",
    "plays": (
        "play count, playcount, play counts, number of plays, total plays, times played, streams, stream count,"
        " total streams, listens, scrobbles, spins, performances, actual total performances, views, count, total,"
        " quantity, qty, units, units sold, number of units sold, menge, anzahl, wiedergaben, abspielungen, aufrufe,"
        " écoutes, lectures, reproducciones, riproduzioni, ascolti, reproduções"
    ),
}
FOLLOWS = {
    "follower": "node 1, source, from, user, user id, follower id, von",
    "followed": "node 2, target, to, followee, following, followed id, friend",
}
# Units of durations. A heading may name one: `Duration (ms)`, `length_seconds`, `Dauer in Sekunden`.
UNITS = durations.UNITS | dict.fromkeys(("mm", "ss", "mmss"), 0)  # not told: `Length (mm:ss)`
UNITS |= dict.fromkeys(("hh", "hhmmss"), UNITS["h"]) | dict.fromkeys(("ff", "mmssff"), durations.FRAMES)
TITLES = {"title", "titel", "name", "titre", "titolo", "titulo"}
TITLED_MORE = {"tracktitle", "trackname", "tracktitel", "songtitle", "songname", "songtitel"}
TITLED = "track"  # a column of this name beside one with titles holds numbers
PLACES = {"number", "no", "nr", "position", "sequence", "sequencenumber"}  # in a playlist or a chart
JOINTS = {"in", "the", "of"}
# Of charts and of reports of sales, whose plain dates are those of charts and sales.
SALES = {"quantity", "qty", "units", "unitssold", "streams", "earnings", "royalty", "royalties", "retailer", "store"}
SALES |= {"menge", "anzahl", "erlos", "lastweek", "peakrank", "peakposition", "weeksonboard", "weeksonchart", "venue"}
PERIODS = {"month", "monat", "mes", "mois", "mese"}  # beside them, a plain year is that of sales, too
PLAIN_YEARS = {"year", "jahr"}
WHEN = {"date", "datum", "time"}
# Columns whose ids tell how many names the column for a field has.
COUNTS = {
    "artist": "artist uris, artist ids, künstler uris",
    "album_artist": "album artist uris, album artist ids, album künstler uris",
}
# Columns with ids that are ours, not those of another service, in our own exports of figures.
OWN_IDS = {"trackid", "albumid"}
# Columns of lists of releases, such as those of Discogs, and the fields of which lists of tracks have one.
RELEASED = {"releaseid", "catalognumber", "catalogno", "catno", "catnumber", "cataloguenumber", "katalognummer"}
RELEASED |= {"tracks", "numberoftracks", "upc", *COLUMNS["upc"].headings.replace(" ", "").split(",")}
OF_TRACKS = ("external_id", "track", "item_type", "album", "duration_ms", "bpm", "key", "isrc", "track_number")
VERSIONS = {"version", "mix", "mixname", "mixversion", "remix", "trackversion", "trackmix", "assetversion", "fassung"}
VERSIONS |= {"recordingversion"}
DAILY = {"date", "trackid", "track", "artists", "plays", "listeners"}  # of our exports of the plays of each day
# Of the zones in headings such as `Played at (CET)`, other than UTC.
ZONES = {"local", "lokal", "ortszeit", "europe", "america", "asia", "australia", "africa", "pacific", *times.ZONES}
MOST_HOURS = 14  # from UTC
# Columns with the zone of the times beside them, and what is left of cells for UTC without signs and zeros.
ZONED = {"timezone", "tz", "utcoffset", "gmtoffset", "tzoffset", "timezoneoffset", "zeitzone", "fuseauhoraire"}
UTC = {"", "utc", "gmt", "z", "etc/utc", "etc/gmt", "uct", "etc/uct", "zulu"}
WORD = re.compile(r"[^\W\d_]+|[0-9]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
OPENING = re.compile(r"[(\[*]")
CLOSING = re.compile(r"[)\]]")


def words(heading: str) -> list[str]:
    """Return the words of a heading, whatever its case, accents and separators."""
    text = CAMEL.sub(" ", unicodedata.normalize("NFKC", heading[:LONGEST_HEADING])).replace("#", " number ")
    text = unicodedata.normalize("NFKD", text.casefold())
    return WORD.findall("".join(char for char in text if not unicodedata.combining(char)))


def keys(heading: str) -> list[str]:
    """Return the forms of a heading that may be known, the best first: as it is, without an aside, without a unit."""
    whole, short = words(heading), words(_without_asides(heading[:LONGEST_HEADING]))
    ends = short[-1:] and short[-1] in JOINTS  # `Time In` is no time in a unit
    plain = short if ends else [word for word in short if word not in UNITS and word not in JOINTS]
    return list(dict.fromkeys("".join(each) for each in (whole, short, plain) if each))


def _without_asides(heading: str) -> str:
    """Return the heading without stars and what stands in brackets, in a time that is linear in its length."""
    parts, at = [], 0
    while opening := OPENING.search(heading, at):
        end = opening.end()
        if opening[0] != "*":
            if (closing := CLOSING.search(heading, end)) is None:
                break
            end = closing.end()
        parts.append(heading[at : opening.start()])
        at = end
    return " ".join([*parts, heading[at:]])


def unit(heading: str) -> int:
    """Return the milliseconds of the unit of durations that a heading names, or 0."""
    return next((found for word in words(heading) if (found := UNITS.get(word))), 0)


def is_zoned(heading: str, rows: Sequence[Mapping[str, object]], ignored: Collection[str]) -> bool:
    """Return True if a heading names a zone other than UTC in brackets, such as `(CET)`, or a column not `ignored`."""
    beside = {name for row in rows for name in row if name not in ignored}
    aside = {*words(heading)} - {*words(_without_asides(heading))}
    hours = any(each.isdecimal() and 0 < int(each) <= MOST_HOURS for each in aside)  # not those of `(UTC, ISO 8601)`
    if not ZONES.isdisjoint(aside) or (hours and not aside.isdisjoint({"utc", "gmt"})):
        return True
    zones = {str(row.get(name) or "").strip(" +-:.0").lower() for name in beside if key(name) in ZONED for row in rows}
    return not zones <= UTC


def is_listed(heading: str, rows: Sequence[Mapping[str, object]]) -> bool:
    """Return True if a heading such as `#` does not say whose number it is, and the rows are of several albums."""
    if not rows or PLACES.isdisjoint(keys(heading)):
        return False
    forms = {*known("album", CATALOG["album"])}
    albums = [name for name in {name for row in rows for name in row} if not forms.isdisjoint(keys(name))]
    return any(len({str(row.get(name) or "") for row in rows} - {""}) > 1 for name in albums)


def key(heading: str) -> str:
    """Return what a heading has in common with others that mean the same, whatever their case and separators."""
    return "".join(words(heading))


def without_own_ids(columns: Sequence[str], fields: Collection[str]) -> tuple[bool, Sequence[str]]:
    """Return whether a file is an export of this service, and its columns, without ids of ours that are no fields."""
    found = {column: key(column) for column in columns}
    if {key(FIGURE), "playsofalltime"}.isdisjoint(found.values()):
        return False, columns
    return True, [column for column in columns if column in fields or found[column] not in OWN_IDS]


def require_tracks(columns: Sequence[str], mapped: Collection[str]) -> None:
    """Raise Failure for the columns of an export of this service, or of a list of releases: no row is a track."""
    found = {*map(key, columns)}
    of_tracks = {form for field in OF_TRACKS for form in known(field, CATALOG[field])} - TITLES - PLACES
    released = next((each for each in columns if key(each) in RELEASED), None)
    titled = {form for each in columns if each not in mapped for form in keys(each)}
    if released and not titled.isdisjoint(TITLES) and titled.isdisjoint(of_tracks):
        raise Failure(
            f"The rows of the file seem to be releases, as it has the column {cut(released)!r}, and none of albums,"
            " lengths or ISRCs. Import a table of their tracks; if they are tracks, call the column of titles Track."
        )
    if found >= DAILY or (without_own_ids(columns, ())[0] and TITLED not in found):
        raise Failure(
            "The file is an export of albums, artists or daily plays, which cannot be imported."
            " Export tracks, and import that file instead."
        )


def counts(field: str, heading: str) -> bool:
    """Return True if a column has the ids of the names that fill a field."""
    return field in COUNTS and not {*known(field, COUNTS[field])[1:]}.isdisjoint(keys(heading))


@lru_cache(maxsize=1024)  # more than there are fields
def known(field: str, synonyms: str) -> tuple[str, ...]:
    """Return the forms of the headings for a field, the best first: its own name, then the synonyms."""
    names: Iterable[str] = (field, *synonyms.split(","))
    return tuple(dict.fromkeys("".join(words(name)) for name in names))


def candidates(columns: Mapping[str, Sequence[str]], field: str, synonyms: str, taken: Collection[str]) -> list[str]:
    """Return the columns that may fill a field, the best first. `columns`: with their `keys`."""
    forms = {key for each in columns.values() for key in each}
    is_titled = not forms.isdisjoint(TITLES | TITLED_MORE)

    def is_number(column: str) -> bool:
        """Return True if a column `Track` stands beside `Title`, as music players export them: the track's number."""
        return is_titled and "".join(words(column)) == TITLED

    ranks = {key: rank for rank, key in enumerate(known(field, synonyms))}
    if field in {"release_date", "duration_ms"} and _are_events(columns.values()):
        when = WHEN if forms.isdisjoint(PERIODS) else WHEN | PLAIN_YEARS
        ranks = {key: rank for key, rank in ranks.items() if key not in when}
    is_chart = _are_events(columns.values()) and forms.isdisjoint(known("album", CATALOG["album"]))
    if field == "track_number" and (is_chart or not forms.isdisjoint(known("playlist", CATALOG["playlist"]))):
        ranks = {key: rank for key, rank in ranks.items() if key not in PLACES}
    if field == "track_number" and is_number(TITLED):
        ranks["track"] = len(ranks)
    found = []
    for place, (column, own_forms) in enumerate(columns.items()):
        own = [ranks[key] for key in own_forms if key in ranks]
        if own and column not in taken and not (field == TITLED and is_number(column)):
            found.append((column != field, own[0], place, column))
    return [column for *_, column in sorted(found)]


def _are_events(columns: Collection[Sequence[str]]) -> bool:
    """Return True if the rows of a table are sales or plays, which have dates of their own. `columns`: their `keys`."""
    first = [each[0] if each else "" for each in columns]
    logged = {*known("", DATES)}, {*known("", CLOCKS)}
    is_logged = any(
        each in logged[0] and other in logged[1] for pair in pairwise(first) for each, other in (pair, pair[::-1])
    )
    return is_logged or not SALES.isdisjoint(key for each in columns for key in each)
