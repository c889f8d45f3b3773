"""`musicsvc cover`: pictures for shops, in the format that the name of the file says."""

import io
from pathlib import Path

import pytest
from PIL import Image

from musicsvc.reports.art import covers
from tests.cli.conftest import Run
from tests.reports.pictures import difference

LINE = ("cover", "--title", " Night of a \U0001f43a ", "--artist", "Mara", "--template", "2")


@pytest.mark.parametrize(
    ("name", "form", "size"), [("a.jpg", "JPEG", 3000), ("b.PNG", "PNG", 500), ("c.jpeg", "JPEG", 16)]
)
def test_a_cover_has_the_format_of_its_name_and_the_size(
    bare: Run, tmp_path: Path, name: str, form: str, size: int
) -> None:
    file = tmp_path / name
    done = bare(*LINE, "-o", str(file), *(() if size == 3000 else ("--size", str(size))))
    assert done.stderr == f"Written to {file}.\n"
    with Image.open(file) as picture:
        assert (picture.format, picture.size, picture.mode) == (form, (size, size), "RGB")


def test_a_text_that_the_preview_refuses_is_drawn_on_no_cover(bare: Run, tmp_path: Path) -> None:
    refused = bare(*LINE[:-4], "--artist", "Ma\x1bra", *LINE[-2:], "-o", str(tmp_path / "a.png"), expect=2)
    assert "'--artist': Must not contain control characters" in refused.stderr


def test_a_cover_looks_as_the_preview(bare: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    bare(*LINE, "--size", "1000", "-o", str(file))
    assert difference(file.read_bytes(), covers.cover(2, "Night of a \U0001f43a", "Mara")) is None
    with Image.open(io.BytesIO(covers.flattened(file.read_bytes(), "JPEG"))) as picture:
        assert picture.layers == 3  # type: ignore[attr-defined]
        assert {layer[1:3] for layer in picture.layer} == {(1, 1)}  # type: ignore[attr-defined]
