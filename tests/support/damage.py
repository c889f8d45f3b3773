"""Damage SQLite files, for tests that such a file is found, refused or replaced."""

from pathlib import Path

import apsw

PAGE = 4096


def overwrite_middle_page(file: Path) -> None:
    """Overwrite the page in the middle of the file."""
    content = file.read_bytes()
    at = len(content) // 2 // PAGE * PAGE
    file.write_bytes(content[:at] + b"\xa5" * PAGE + content[at + PAGE :])


def add_dangling_row(file: Path) -> None:
    """Add a row that refers to missing rows."""
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO track_genre (track_id, genre_id) VALUES (7, 9)")
    connection.close()
