"""The model of docs/scale.md is computed from measured figures."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_has_the_table_of_the_model() -> None:
    table = runpy.run_path(str(ROOT / "benchmarks" / "day.py"))["table"]
    assert "\n".join(table()) in (ROOT / "docs" / "scale.md").read_text("utf-8")
