"""Only packaged fonts are used, and the table of their characters is right."""

import tomllib
import unicodedata

import pytest

from musicsvc.reports import typesetting
from tests.reports import font_coverage


def test_every_font_is_listed_with_its_licence() -> None:
    fonts = {path for ending in ("ttf", "ttc", "otf") for path in typesetting.FOLDER.rglob(f"*.{ending}")}
    listings = [
        (path.parent, tomllib.loads(path.read_text("utf-8"))) for path in typesetting.FOLDER.rglob("VENDORED.toml")
    ]
    assert fonts <= {folder / name for folder, listing in listings for name in listing["files"]}


def test_typst_sees_our_families_and_no_others() -> None:
    families = set(typesetting.fonts().families())
    assert families == {*typesetting.FAMILIES, "WenQuanYi Micro Hei Mono"}


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="the table is that of Python 3.11, with Unicode 14")
def test_the_table_of_what_fonts_draw_is_that_of_the_fonts() -> None:
    table = (typesetting.FOLDER / "coverage.txt").read_text(encoding="ascii")
    assert table == font_coverage.table(), "write it again: python -m tests.reports.font_coverage"
