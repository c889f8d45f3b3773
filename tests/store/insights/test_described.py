"""The rows that say how figures are shown describe all of them."""

import re
from dataclasses import fields

import pytest

from musicsvc.store.insights.figures import FIGURES, Figure, Figures
from musicsvc.store.insights.listening.listening import LISTENING, Listening


def test_each_figure_has_a_row() -> None:
    assert ["window", *(each.key for each in FIGURES)] == [each.name for each in fields(Figures)]
    assert ("window", *(each.key for each in LISTENING)) == Listening._fields


@pytest.mark.parametrize("rows", [FIGURES, LISTENING], ids=["figures", "listening"])
def test_notes_and_growth_name_figures(rows: tuple[Figure, ...]) -> None:
    paths = {each.path for each in rows}
    named = {path for each in rows for path in (*re.findall(r"{(.+?)}", each.note), each.growth) if path}
    assert named <= paths
    assert not named & {each.path for each in rows if each.card}
    assert len(paths) == len({each.name for each in rows}) == len(rows)


def test_columns_with_decimals_have_a_name_that_excel_and_parquet_know() -> None:
    assert {each.name for each in FIGURES if isinstance(each.example, float)} == {
        each.name for each in FIGURES if each.name.endswith("_change")
    }
