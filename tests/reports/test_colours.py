"""Pages, the PDF report and the page of the API have one colour, and charts the same colours for their lines."""

import re
from pathlib import Path

import musicsvc
from musicsvc.reports.charts import details

PACKAGE = Path(musicsvc.__file__).parent
PAGES = PACKAGE / "server" / "pages"


def first(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(encoding="utf-8"))
    assert found is not None, path
    return found[1]


def test_there_is_one_colour() -> None:
    colour = first(r"--pico-primary: (#\w+);", PAGES / "static" / "site.css")
    assert first(r'accent = rgb\("(#\w+)"\)', PACKAGE / "reports" / "templates" / "style.typ") == colour
    assert first(r"header a {.*?color: (#\w+);", PAGES / "docs" / "page.css") == colour
    figures = PAGES / "static" / "figures" / "figures.css"
    others = [first(rf"--chart-other-{each}: (#\w+);", figures) for each in range(1, 5)]
    assert list(details.LINES) == [colour, *others]
    assert colour in dict(details.LEVELS)
