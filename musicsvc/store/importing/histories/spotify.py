"""What Spotify sends on request: the extended streaming history, and the year of the account data.

Of its fields the time, the track, how long it was heard and why it ended are read; addresses, devices, countries and
user names are not. A stream is a play from 30 seconds on, or when the track came to its end; private sessions are not.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from musicsvc.store.importing.histories.documents import Document

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORTEST = 30_000  # milliseconds
URI = "spotify:track:"


class SpotifyExtended(Document):
    """`endsong_N.json` and `Streaming_History_Audio_….json`: an array of streams."""

    def entries(self, value: Any) -> list[Any]:
        """The streams."""
        if not isinstance(value, list):
            raise self.unlike("a Spotify streaming history, which is a JSON array")
        return value

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """A stream; its time in the file is that of its end."""
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
    """`StreamingHistory….json` of the account data: an array of streams without ids."""

    def entries(self, value: Any) -> list[Any]:
        """The streams."""
        if not isinstance(value, list):
            raise self.unlike("a Spotify streaming history, which is a JSON array")
        return value

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """A stream; its end is told to the minute, in UTC."""
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
    """When a stream began that ended at this time, told in UTC."""
    return datetime.fromisoformat(ended.removesuffix("Z")).replace(tzinfo=UTC) - timedelta(milliseconds=played)
