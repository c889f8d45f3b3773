"""The table of export formats."""

import pytest

from musicsvc.reports.formats import FORMATS
from musicsvc.reports.tables import Table

HEAD = {"type": "tracks", "period": {"name": "7-days"}, "generated_at": "2026-03-01T12:00:00.000000Z"}
ROWS = Table(("track_id", "track"), [(1, "Maple Leaf Rag"), (2, "Étude")], HEAD)
BEGINNINGS = {"csv": b'"track_id","track"', "json": b'{"success":true', "parquet": b"PAR1", "xlsx": b"PK"}


@pytest.mark.parametrize("format_id", FORMATS)
def test_a_format_is_written_from_rows_unless_it_is_one_of_reports(format_id: str) -> None:
    form = FORMATS[format_id]
    assert form.id == format_id
    assert (form.write_table is None) == (form.id == "pdf")
    if form.write_table is not None:
        assert b"".join(form.write_table(ROWS)).startswith(BEGINNINGS[format_id])
