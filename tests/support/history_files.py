"""Files of listening histories, and the rows that are read from them."""

from pathlib import Path
from typing import Any

import orjson

from musicsvc.clock import isoformat
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.plays import listen_rows
from musicsvc.store.importing.runner import RefusedError
from musicsvc.store.importing.summary import NOTES

COLUMNS = Columns(listen_rows.FIELDS, ())
Listed = list[tuple[Any, ...]]


def read(path: Path, form: str | None = None) -> Listed:
    """Return the line of each row with artists, track, album, time and seconds played, or its note or fault."""
    found: Listed = []
    with histories.open_file(path, form) as reader:
        for record in reader:
            if record.note is not None or record.fault is not None:
                assert record.note is None or record.note in NOTES
                found.append((record.line, record.note or record.fault))
                continue
            try:
                row = listen_rows.parse(record, COLUMNS.read(record.values, ()), "me", {})
            except RefusedError as refused:
                found.append((record.line, str(refused)))
                continue
            named = row.named
            when = isoformat(row.played_at).removesuffix(".000000Z")
            found.append((record.line, "; ".join(named.artists), named.track, named.album, when, row.duration_ms))
        assert reader.position == reader.size
    return found


def write(path: Path, content: str | bytes | object) -> Path:
    raw = (
        content.encode()
        if isinstance(content, str)
        else content
        if isinstance(content, bytes)
        else orjson.dumps(content)
    )
    path.write_bytes(raw)
    return path


def stream(**more: object) -> dict[str, object]:
    """Return a stream of Spotify, with fields that are read and some that must not be."""
    return {
        "ts": "2024-05-01T10:03:20Z",
        "username": "somebody",
        "ip_addr": "192.0.2.1",
        "ms_played": 200_000,
        "master_metadata_track_name": "Rag",
        "master_metadata_album_artist_name": "Ann; Bea",
        "master_metadata_album_album_name": "Two",
        "spotify_track_uri": "spotify:track:abc",
        "reason_end": "trackdone",
        "incognito_mode": False,
    } | more


LISTEN = {
    "listened_at": 1_714_557_600,
    "track_metadata": {
        "artist_name": "Ann; Bea",
        "track_name": "Rag",
        "release_name": "Two",
        "additional_info": {
            "duration_played": 200,
            "recording_mbid": "m",
            "spotify_id": "https://open.spotify.com/track/s",
        },
    },
}
