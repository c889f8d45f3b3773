"""Fixtures of the tests of figures."""

import pytest

from musicsvc.store.plays.rollups import blocks
from tests.support.bounds import Bounds


@pytest.fixture
def weeks_of_rare_plays(bounds: Bounds) -> None:
    """Let blocks of 8 days with two plays have counts, as those of often played subjects."""
    often = f">= {blocks.LEAST_PLAYS}", f">= {blocks.LEAST_PLAYS * blocks.LENGTH8}"
    assert blocks.POPULAR.count(often[0]) == blocks.POPULAR.count(often[1]) == 1
    rare = blocks.POPULAR.replace(often[1], ">= 2").replace(often[0], ">= 1")
    bounds(popular=rare)
