"""Uploaded files without a file."""

from musicsvc.store.importing.tasks import queue


def checked_file(user: int, name: str, now: int) -> int:
    """Store that the account has uploaded a file, which was checked, and return its id. Call in a transaction."""
    task = queue.create(user, "catalog", name, "songs.csv", "elsewhere", now)
    report = {
        "columns": [
            {"column": "Title", "field": "track", "guess": "track", "written": None},
            {"column": "Duration", "field": "duration_ms", "guess": "duration_ms", "written": "m:ss"},
        ],
        "rows": [["2", "Air", "3:45"], ["3", "W" * 120, "4:05"]],
        "counts": {"artists": (1, 0, 1, 0), "tracks": (5_000, 3, 7, 2)},
        "read": 5_000,
        "more": True,
        "refused": 2,
        "reasons": ["line 7: track is missing", f"line 9: no track has this isrc: {'W' * 120}"],
        "twins": 2,
    }
    queue.finish(task, queue.DONE, report, None)
    return task
