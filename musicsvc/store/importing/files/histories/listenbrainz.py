"""Read ListenBrainz exports: one JSON object per line, or one JSON array in older exports."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.files.histories.documents import load, record
from musicsvc.store.importing.files.records import Reader, Step
from musicsvc.store.importing.files.texts import JsonLinesReader

SPOTIFY = "https://open.spotify.com/track/"


class ListenBrainz(Reader):
    columns = None

    def __init__(self, path: Path) -> None:
        self._lines: JsonLinesReader | None = None
        self._listens: list[Any] = []
        self._read = 0
        if _is_lines(path):
            self._lines = JsonLinesReader(path)
            self.size = self._lines.size
        else:
            self._listens = _listens(load(path), path)
            self.size = len(self._listens)

    @property
    def position(self) -> int:
        return self._read if self._lines is None else self._lines.position

    def steps(self) -> Iterator[Step]:
        if self._lines is not None:
            for line in self._lines:
                yield line if line.fault is not None else record(line.line, line.values, values)
            return
        for number, listen in enumerate(self._listens, 1):
            self._read = number
            yield record(number, listen, values)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def _is_lines(path: Path) -> bool:
    """Return True if the file has one JSON object per line: its first line is a complete play."""
    with JsonLinesReader(path) as lines:
        first = next(iter(lines), None)
    return first is None or (first.fault is None and "payload" not in first.values)


def _listens(value: Any, path: Path) -> list[Any]:
    """Return the plays in a JSON array, or in the `payload` of a JSON object."""
    if isinstance(value, dict) and isinstance(value.get("payload"), list):
        return [] if value.get("listen_type") == "playing_now" else list(value["payload"])
    if not isinstance(value, list):
        raise Failure(f"{path} is not a ListenBrainz export.")
    return value


def values(listen: Mapping[str, Any]) -> Mapping[str, Any]:
    track = listen["track_metadata"]
    more = track.get("additional_info") or {}
    recording = more.get("recording_mbid") or (track.get("mbid_mapping") or {}).get("recording_mbid")
    spotify = str(more.get("spotify_id") or "").removeprefix(SPOTIFY)
    seconds = more.get("duration_played")
    return {
        "external_id": [each for each in (recording, spotify) if each],
        "artist": [track["artist_name"]],
        "track": track["track_name"],
        "album": track.get("release_name"),
        "played_at": listen["listened_at"],
        "duration_ms": None if seconds is None else seconds * 1000,
    }
