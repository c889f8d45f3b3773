"""`musicsvc insights release`, and listening, hours and milestones in the terminal."""

import pytest

from musicsvc.cli import listening
from musicsvc.clock import HOUR, parse
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album
from tests.cli.conftest import Run
from tests.support.listening_world import Catalog, catalog

RELEASED = parse("2024-03-04")  # a Monday, long before today


@pytest.fixture
def made(store: Store) -> Catalog:
    """Albums of the same release date; 2 plays of the first one on that day, and 1,000 on the next one."""

    def fill() -> Catalog:
        made = catalog(RELEASED)
        Album.update(release_date="2024-03-04").execute()
        on_next_day = [(made.tracks[1], RELEASED + 30 * HOUR + each * 60_000_000, "ada") for each in range(1_000)]
        made.add_plays([(made.tracks[0], RELEASED + 3 * HOUR, name) for name in ("ada", "ben")] + on_next_day)
        made.add_plays([(made.tracks[3], RELEASED + 5 * HOUR, name) for name in ("ada", "ben", "cleo")])
        return made

    return store.write(fill).result()


def test_an_album_has_its_hours_and_milestones(run: Run, made: Catalog) -> None:
    album = str(made.albums[0])
    shown = run("insights", "show", "album", album, "--period", "2024-03").stdout.splitlines()
    assert shown[:14] == [
        f"album                {album}: Album 0",
        "period               2024-03: 2024-03-01 to 2024-03-31",
        "plays                1,002 (first plays 4 Mar 2024); 1,002 of all time",
        "listeners            2 (first plays 4 Mar 2024); 2 of all time",
        "likes                0; given in these days",
        "reposts              0; given in these days",
        "skips                0; of 0 with a duration",
        "completion           -",
        "plays per listener   501.0",
        "new listeners        2; first play in this period",
        "returning listeners  0; had played before",
        "milestones           100 on 2024-03-05 07:37; 1,000 on 2024-03-05 22:37",
        "best day             2024-03-05: 1,000 plays",
        f"plays by day         {'▁' * 3}▂█{'▁' * 26}",
    ]
    assert shown[15:21] == [
        "hours of the week",
        "day        hours 0 to 23 (UTC)       plays  most at",
        f"Monday     {'▁' * 3}█{'▁' * 20}  2      03:00",
        f"Tuesday    {'▁' * 6}{'█' * 16}▆▁  1,000  06:00",
        "Wednesday  -                         0      -",
        "Thursday   -                         0      -",
    ]


def test_completion_and_listeners_are_lines_of_text() -> None:
    counts = {"skips": 1_234, "plays_with_duration": 56_789, "plays_per_listener": 3.5}
    people = {"new_listeners": 2_345, "returning_listeners": 6_789, "completion": {"mean": 61.5, "median": 70.0}}
    nothing_reached: dict[str, object] = {"plays": [], "best_day": None}
    assert listening.lines({"listening": counts | people, "milestones": nothing_reached}) == {
        "skips": "1,234; of 56,789 with a duration",
        "completion": "61.5 %; on average, median 70.0 %",
        "plays per listener": "3.5",
        "new listeners": "2,345; first play in this period",
        "returning listeners": "6,789; had played before",
        "milestones": None,
        "best day": None,
    }
