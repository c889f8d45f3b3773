"""Read Maloja exports, the only history format with a list of artists for each track."""

from collections.abc import Mapping
from typing import Any

from musicsvc.store.importing.files.histories.documents import Document


class Maloja(Document):
    """Reads `maloja_export_….json`: a JSON object with a list of plays (scrobbles)."""

    def entries(self, value: Any) -> list[Any]:
        found = value.get("scrobbles") if isinstance(value, dict) else None
        if not isinstance(found, list):
            raise self.unlike("is not a Maloja export")
        return found

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """Return the fields of a play. In the file, `duration` is the number of seconds played."""
        track = entry["track"]
        seconds = entry.get("duration")
        return {
            "artist": track.get("artists") or [],
            "track": track.get("title"),
            "album": (track.get("album") or {}).get("albumtitle"),
            "played_at": entry["time"],
            "duration_ms": None if seconds is None else seconds * 1000,
        }
