"""Read Spotify's privacy exports: the extended streaming history, and the account data of the last year.

Streams are imported if they lasted at least 30 seconds or reached the end of the track. Private sessions are skipped.
IP addresses, devices, countries and user names are ignored.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from musicsvc.store.importing.files.histories.documents import Document

SHORTEST = 30_000  # milliseconds
URI = "spotify:track:"


class SpotifyExtended(Document):
    """Reads `endsong_N.json` and `Streaming_History_Audio_….json`: a JSON array of plays (streams)."""

    def entries(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.unlike("is not a Spotify streaming history: it must be a JSON array")
        return value

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return the fields of a play, or a reason to skip it (a key of summary.NOTES). The file has its end time."""
        played = entry["ms_played"]
        if entry.get("master_metadata_track_name") is None:
            return "no_track"
        if entry.get("incognito_mode"):
            return "private"
        if played < SHORTEST and entry.get("reason_end") != "trackdone":
            return "short"
        return {
            "external_id": (entry.get("spotify_track_uri") or "").removeprefix(URI),
            "artist": [entry["master_metadata_album_artist_name"]],
            "track": entry["master_metadata_track_name"],
            "album": entry.get("master_metadata_album_album_name"),
            "played_at": _began(entry["ts"], played),
            "duration_ms": played,
        }


class SpotifyAccount(Document):
    """Reads `StreamingHistory….json` in the account data: a JSON array of plays (streams) without track ids."""

    def entries(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.unlike("is not a Spotify streaming history: it must be a JSON array")
        return value

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return the fields of a play, or a reason to skip it (a key of summary.NOTES). The file has its end in UTC."""
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
