"""Maloja's own export: the one format with true lists of artists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from musicsvc.store.importing.histories.documents import Document

if TYPE_CHECKING:
    from collections.abc import Mapping


class Maloja(Document):
    """`maloja_export_….json`: an object with the scrobbles."""

    def entries(self, value: Any) -> list[Any]:
        """The scrobbles."""
        found = value.get("scrobbles") if isinstance(value, dict) else None
        if not isinstance(found, list):
            raise self.unlike("an export of Maloja")
        return found

    def values(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """A scrobble; lengths are in seconds, and what was heard of the track is `duration`."""
        track = entry["track"]
        heard = entry.get("duration")
        return {
            "artist": track.get("artists") or [],
            "track": track.get("title"),
            "album": (track.get("album") or {}).get("albumtitle"),
            "played_at": entry["time"],
            "duration_ms": None if heard is None else heard * 1000,
        }
