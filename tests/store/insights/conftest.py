"""Fixtures of the tests of figures."""

import pytest

from musicsvc.store.plays.rollups import weekly


@pytest.fixture
def weeks_of_rare_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let weeks with two plays have weekly counts, as those of often played subjects."""
    often = f">= {weekly.LEAST_PLAYS}", f">= {weekly.LEAST_PLAYS * weekly.DAYS}"
    assert weekly.PLAYED.count(often[0]) == weekly.PLAYED.count(often[1]) == 1
    rare = weekly.PLAYED.replace(often[1], ">= 2").replace(often[0], ">= 1")
    monkeypatch.setattr(weekly, "PLAYED", rare)
