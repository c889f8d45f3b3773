"""Constants that existing databases contain; changing one in the code would misread them."""

from functools import partial

import pytest

from musicsvc.clock import DAY, parse
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of
from musicsvc.store.models import Play, PlayCount
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import blocks, listeners
from tests.support import databases
from tests.support.reported_plays import world

NOON = parse("2026-03-01T12:00:00Z")  # 1,772,366,400 seconds after 1970


@pytest.mark.only_on("sqlite")
def test_files_have_their_application_ids(template: databases.Template, store: Store) -> None:
    template.make_log(store.url)
    file = path_of(store.url)
    assert file is not None
    assert file.read_bytes()[68:72] == b"MSVC"
    assert activity_log.default_file(file).read_bytes()[68:72] == b"MSVL"


def test_plays_are_stored_by_half_minutes_days_and_blocks_of_32_days(store: Store) -> None:
    def play(at: int) -> None:
        (listener,) = listeners.ensure(["opaque:1"]).values()
        ingest.record([PlayRow(at // SLOT, 1, listener, WITHOUT_ID, at, None, 0)])

    store.write(world).result()
    for at in (NOON, NOON - 70 * DAY):
        store.write(partial(play, at)).result()
    while store.write(lambda: blocks.roll_up(100)).result():
        pass

    def kept() -> tuple[set[int], set[int]]:
        return {row.slot for row in Play.select()}, {row.key for row in PlayCount.select()}

    days = [(20_513 + 719_168) << 39, (20_443 + 719_168) << 39]
    block = (2 << 61) + ((20_443 + 719_168) // 32 << 39)
    keys = {first + (kind << 37) + 1 for first in (*days, block) for kind in (1, 2, 3)}
    assert store.read(kept).result() == ({59_078_880, 58_877_280}, keys)
