"""The entries of histories in JSON: exports of ListenBrainz, Maloja, Spotify, Last.fm and Pano Scrobbler.

Streams of Spotify's privacy exports are imported if they lasted at least 30 seconds or reached the end of the track.
Private sessions are skipped. IP addresses, devices, countries and user names are ignored.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from musicsvc.store.importing.files.histories.documents import Converted, Document
from musicsvc.store.importing.files.records import Reader
from musicsvc.store.importing.files.texts import JsonLinesReader

SHORTEST = 30_000  # milliseconds


def listenbrainz(path: Path) -> Reader:
    """Open an export of ListenBrainz: one JSON object per line, or one JSON value in older exports."""
    with JsonLinesReader(path) as lines:
        first = next(iter(lines), None)
    if first is None or (first.fault is None and "payload" not in first.values):  # a complete play
        return Converted(_listen, JsonLinesReader(path))
    return Document(_listens, _listen, "a ListenBrainz export", path)


def _listens(value: Any) -> list[Any] | None:
    """Return the plays in a JSON array, or in the `payload` of a JSON object."""
    if isinstance(value, dict) and isinstance(value.get("payload"), list):
        return [] if value.get("listen_type") == "playing_now" else list(value["payload"])
    return array(value)


def _listen(listen: Mapping[str, Any]) -> Mapping[str, Any]:
    track = listen["track_metadata"]
    more = track.get("additional_info") or {}
    recording = more.get("recording_mbid") or (track.get("mbid_mapping") or {}).get("recording_mbid")
    return {
        "external_id": [each for each in (recording, more.get("spotify_id")) if each],
        "artist": [track["artist_name"]],
        "track": track["track_name"],
        "album": track.get("release_name"),
        "played_at": listen["listened_at"],
        "duration_ms": _milliseconds(more.get("duration_played")),
    }


def _milliseconds(seconds: Any) -> Any:
    return None if seconds is None else seconds * 1000


def array(value: Any) -> list[Any] | None:
    """Return the entries of a JSON array."""
    return value if isinstance(value, list) else None


def maloja_scrobbles(value: Any) -> list[Any] | None:
    return array(value.get("scrobbles")) if isinstance(value, dict) else None


def maloja(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a play. Maloja alone has a list of artists. `duration`: the number of seconds played."""
    track = entry["track"]
    return {
        "artist": track.get("artists") or [],
        "track": track.get("title"),
        "album": (track.get("album") or {}).get("albumtitle"),
        "played_at": entry["time"],
        "duration_ms": _milliseconds(entry.get("duration")),
    }


def spotify(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a stream in the extended history. The file has its end time."""
    played = entry["ms_played"]
    if entry.get("master_metadata_track_name") is None:
        return "no_track"
    if entry.get("incognito_mode"):
        return "private"
    if played < SHORTEST and entry.get("reason_end") != "trackdone":
        return "short"
    return {
        "external_id": entry.get("spotify_track_uri"),
        "artist": [entry["master_metadata_album_artist_name"]],
        "track": entry["master_metadata_track_name"],
        "album": entry.get("master_metadata_album_album_name"),
        "played_at": _began(entry["ts"], played),
        "duration_ms": played,
    }


def spotify_account(entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """Return the fields of a stream in the account data of the last year, without track ids. Its end is in UTC."""
    played = entry["msPlayed"]
    if played < SHORTEST:
        return "short"
    return {
        "artist": [entry["artistName"]],
        "track": entry["trackName"],
        "played_at": _began(entry["endTime"], played),
        "duration_ms": played,
    }


def _began(ended: str, played: int) -> datetime:
    """Return the start of a play that ended at the UTC time `ended` and lasted `played` milliseconds."""
    return datetime.fromisoformat(ended.removesuffix("Z")).replace(tzinfo=UTC) - timedelta(milliseconds=played)


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
        "played_at": entry["date"]["uts"],
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
        "played_at": row["timeMs"] / 1000,
    }
