"""The entries of histories of services, most of them in JSON.

Streams of Spotify's and Apple's privacy exports are imported if they lasted at least 30 seconds or reached the end of
the track. Private sessions are skipped. IP addresses, devices, countries and user names are ignored.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from musicsvc.store.importing.cells.names import JOINT
from musicsvc.store.importing.files.histories.documents import Converted, Document
from musicsvc.store.importing.files.records import Reader
from musicsvc.store.importing.files.texts import JsonLinesReader

SHORTEST = 30_000  # milliseconds
# What Google writes before and behind the title of a watched video, in English, German, French, Spanish and Italian.
WATCHED = (("Watched ", ""), ("", " angesehen"), ("Vous avez regardé ", ""), ("Has visto ", ""), ("Hai guardato ", ""))


def listenbrainz(path: Path) -> Reader:
    """Open an export of ListenBrainz: one JSON object per line, or one JSON value in older exports."""
    with JsonLinesReader(path) as lines:
        first = next(iter(lines), None)
    if first is None or (first.fault is None and "payload" not in first.values):  # a complete play
        return Converted(_listen, JsonLinesReader(path))
    return Document(_listens, _listen, "a ListenBrainz export", path)


def _listens(value: Any) -> list[Any] | None:
    """Return the plays in a JSON array, or in the `payload` of a JSON object, as it is sent or answered."""
    found = value.get("payload") if isinstance(value, dict) else value
    found = array(found.get("listens") if isinstance(found, dict) else found)
    return [] if isinstance(value, dict) and value.get("listen_type") == "playing_now" else found


def _listen(listen: Mapping[str, Any]) -> Mapping[str, Any]:
    track = listen["track_metadata"]
    more, mapped = track.get("additional_info") or {}, track.get("mbid_mapping") or {}
    recording = more.get("recording_mbid") or mapped.get("recording_mbid")
    names, joined = more.get("artist_names"), track["artist_name"]
    names = array(names) or [each.get("artist_credit_name") for each in mapped.get("artists") or []]
    return {
        "external_id": [each for each in (recording, more.get("spotify_id")) if each],
        "isrc": more.get("isrc"),
        "artist": names if joined == JOINT.join(map(str, names)) else [joined],
        "track": track["track_name"],
        "album": track.get("release_name"),
        "played_at": listen.get("listened_at"),
        "duration_ms": _milliseconds(more.get("duration_played")),
    }


def _milliseconds(seconds: Any) -> Any:
    return None if seconds is None else seconds * 1000


def array(value: Any) -> list[Any] | None:
    """Return the entries of a JSON array."""
    return value if isinstance(value, list) else None


def listed(*keys: str) -> Callable[[Any], list[Any] | None]:
    """Return a function that finds the entries of a JSON object, under one of these keys."""
    return lambda value: array(next((value[key] for key in keys if isinstance(value, dict) and key in value), None))


def maloja(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a play. Maloja alone has a list of artists. `duration`: the number of seconds played."""
    track = entry["track"]
    return {
        "artist": track.get("artists") or [],
        "track": track.get("title"),
        "album": (track.get("album") or {}).get("albumtitle"),
        "played_at": entry.get("time"),
        "duration_ms": _milliseconds(entry.get("duration")),
    }


def spotify(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a stream in the extended history. The file has its end time."""
    played = _number(entry["ms_played"])
    if not entry.get("master_metadata_track_name"):
        return "no_track"
    if str(entry.get("incognito_mode")).casefold() in {"true", "1"}:  # in tables made of it, a text
        return "private"
    if played < SHORTEST and entry.get("reason_end") != "trackdone":
        return "short"
    return {
        "external_id": entry.get("spotify_track_uri"),
        "artist": [entry["master_metadata_album_artist_name"]],
        "track": entry["master_metadata_track_name"],
        "album": entry.get("master_metadata_album_album_name"),
        "played_at": _began(entry.get("ts"), played),
        "duration_ms": played,
    }


def spotify_account(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a stream in the account data of the last year, without track ids. Its end is in UTC."""
    played = _number(entry["msPlayed"])
    if played < SHORTEST:
        return "short"
    return {
        "artist": [entry["artistName"]],
        "track": entry["trackName"],
        "played_at": _began(entry.get("endTime"), played),
        "duration_ms": played,
    }


def _began(ended: datetime | str | None, played: int) -> datetime | None:
    """Return the start of a play that ended at the time `ended`, in UTC, and lasted `played` milliseconds."""
    if not ended:
        return None
    end = datetime.fromisoformat(str(ended))
    return (end if end.tzinfo else end.replace(tzinfo=UTC)) - timedelta(milliseconds=played)


def _number(cell: Any) -> int:
    """Return a number of an entry, which is a text in a table."""
    return int(float(cell))


def lastfm_tracks(value: Any) -> list[Any] | None:
    """Return the plays (scrobbles) of `recenttracks-….json`: a JSON array of pages."""
    found: list[Any] = []
    for page in value if isinstance(value, list) else [value]:
        inner = page.get("recenttracks", page) if isinstance(page, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("track"), list):
            return None
        found += inner["track"]
    return found


def lastfm(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a play, or the note `playing_now` for a track without date, which is still playing."""
    if entry.get("date") is None:
        return "playing_now"
    return {
        "artist": [_text(entry["artist"])],
        "track": entry["name"],
        "album": _text(entry.get("album")),
        "played_at": entry["date"].get("uts"),
    }


def _text(value: Any) -> Any:
    """Return the name of an artist or album, from the key `#text` or, in extended API responses, `name`."""
    return value.get("#text") or value.get("name") if isinstance(value, dict) else value


def panoscrobbler(row: Mapping[str, Any]) -> Mapping[str, Any] | str:
    if row.get("event", "scrobble") != "scrobble":
        return "no_scrobble"
    return {
        "artist": [row["artist"]],
        "track": row["track"],
        "album": row.get("album"),
        "played_at": _number(row.get("timeMs") or 0) / 1000,
    }


def koito(listen: Mapping[str, Any]) -> Mapping[str, Any]:
    track = listen["track"]
    return {
        "external_id": [track["mbid"]] if track.get("mbid") else [],
        "artist": [_alias(artist) for artist in listen["artists"]],
        "track": _alias(track),
        "album": _alias(listen.get("album")),
        "played_at": listen.get("listened_at"),
    }


def _alias(named: Mapping[str, Any] | None) -> Any:
    """Return the name that Koito shows of several."""
    names = sorted((named or {}).get("aliases") or (), key=lambda each: not each.get("is_primary"))
    return names[0]["alias"] if names else None


def lastfmstats(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "artist": [entry["artist"]],
        "track": entry["track"],
        "album": entry.get("album"),
        "played_at": (entry.get("date") or 0) / 1000,
    }


def youtube_music(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a play, whose artist is the channel, such as `Ann Example - Topic`.

    Raises KeyError for a title in an unknown language.
    """
    if entry["header"] != "YouTube Music":
        return "no_music"
    if not entry.get("subtitles"):
        return "no_track"
    title = entry["title"]
    for before, behind in WATCHED:
        if title.startswith(before) and title.endswith(behind):
            track = title.removeprefix(before).removesuffix(behind)
            artist = entry["subtitles"][0]["name"].removesuffix(" - Topic").removesuffix(" - Thema")
            return {"artist": [artist], "track": track, "played_at": entry.get("time")}
    raise KeyError("title in a known language; set that of the account to English, and export the history again")


def apple_music(row: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a play. Newer exports leave most artists out."""
    track = row.get("Song Name") or row.get("Content Name")
    if row.get("Event Type") not in {None, "", "PLAY_END"}:
        return "no_scrobble"
    played = _number(row["Play Duration Milliseconds"] or 0)
    if not track:
        return "no_track"
    if played < SHORTEST and row.get("End Reason Type") != "NATURAL_END_OF_TRACK":
        return "short"
    return {
        "artist": [row.get("Artist Name") or row.get("Container Artist Name")],
        "track": track,
        "album": row.get("Album Name") or row.get("Container Album Name"),
        "played_at": row["Event Start Timestamp"] or _began(row["Event End Timestamp"], played),
        "duration_ms": played,
    }
