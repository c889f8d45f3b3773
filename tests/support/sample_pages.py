"""The sample data, with something to see on every page for an administrator, and the paths of these pages."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from musicsvc.clock import DAY, MINUTE
from musicsvc.server.routes.route import Route
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.dashboards import report_links
from musicsvc.store.editing import offers
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.undoing import runs
from musicsvc.store.listens import matching, receiving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.models import Album, Artist, PendingListen, Track, User
from musicsvc.store.plays.periods import day_of, to_date, window
from musicsvc.store.plays.subjects import ARTIST, Subject
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures, plays


class Sample(NamedTuple):
    """The demo account's session, and the values of parameters in paths: of the sample data, or by the whole path."""

    session: str
    values: Mapping[str, str]

    def path(self, route: Route) -> str:
        name = self.values.get(route.path, self.values["id"])
        return re.sub(r"\{\w+\}", name, route.path)


def load(now: int) -> Sample:
    """Load the sample data. The demo account is an administrator here.

    One track and its album, which came out lately, have the longest names possible, without a space.
    """
    fixtures.load(now=now)
    plays.load(now=now)
    released = to_date(day_of(now) - 9).isoformat()
    Album.update(name="W" * 255, release_date=released).where(Album.id == 1).execute()
    Track.update(name="M" * 255).where(Track.id == 1).execute()
    demo = users.by_email(fixtures.DEMO_EMAIL)
    User.update(admin=True).where(User.id == demo.id).execute()
    report = report_links.create([Subject(ARTIST, 1)], window("30-days", now), user_id=demo.id, now=now)
    other = users.create("other@label.test", now=now)
    api_access.request(other.email, "Charts", "100 a day", "Label & Daughters", now=now)
    tokens.revoke(1, "abuse: 100 requests refused", now=now, actor="abuse")
    run = runs.start("catalog", "W" * 255, demo.id, {"tracks": Counts(new=28_356)}, now, "page")
    runs.end_run(run, "import.done", now, "page")
    Artist.create(name="W" * 255, manager=other.id, created_at=now)
    offers.ask(other, "W" * 255, now=now)
    offers.create(other, demo.email, (), now=now)
    offer = offers.received(demo.id, now=now)[0].id
    offers.create(demo, f"{'w' * 60}@{'w' * 60}.test", (), now=now)
    hear(demo, now)
    return Sample(
        sessions.create(users.get(demo.id), address="127.0.0.1", agent="Tests/1.0", now=now),
        {
            "id": "1",
            "/import/{id}": str(checked_file(demo.id, "W" * 255, now)),
            "/settings/offers/{id}": str(offer),
            "/imports/{id}/undo": str(run),
            "/password/{link}": password_links.create(other, now=now).secret,
            "/reports/{link}": share_links.address(report.id, report.created_at, Site("")).rpartition("/")[2],
        },
    )


def hear(demo: User, now: int) -> None:
    """Connect a player of the account, which reported listens. Five other accounts lack tracks by its artists, too."""
    player = tokens.identify(tokens.digest(tokens.create(demo, "Navidrome at home", scope=tokens.LISTEN, now=now)[1]))
    assert player is not None
    names = [("Ann Example", "Morning"), ("W" * 120, "M" * 200), ("Cleo Example & Ben Example", "Night")]
    listens = [
        Listen(now - (place + 2) * 40 * MINUTE, *names[place % 4 % 3], "First Light", platform="navidrome")
        for place in range(11)
    ]
    late = [listens[0]._replace(played_at=now - 15 * DAY), listens[1]._replace(title="Noon", release=None)]
    receiving.receive([*listens, *late], [None] * 13, now=now, actor=player, accepted=True, daily=600)
    managed = Artist.get(Artist.manager == demo.id).name
    missing = [Listen(now, managed, title) for title in ("Evening", "N" * 200)]
    columns = ("artist", "title", "names", "artist_key", "user", "slot", "played_at", "received_at")
    for account in range(1_000, 1_005):
        rows = [(each.artist, each.title, *matching.keys(each), account, 1, now, now) for each in missing]
        PendingListen.insert_many(rows, columns).execute()


def checked_file(user: int, name: str, now: int) -> int:
    """Store that the account has uploaded a file, which was checked, and return its id. Call in a transaction."""
    task = queue.create(user, "catalog", name, "songs.csv", "elsewhere", now, replace=True)
    report = {
        "columns": [
            {"column": "Title", "field": "track", "guess": "track", "written": None},
            {"column": "Duration", "field": "duration_ms", "guess": "duration_ms", "written": "m:ss"},
        ],
        "rows": [["2", "Air", "3:45"], ["3", "W" * 120, "4:05"]],
        "counts": {"artists": (1, 0, 1, 0), "tracks": (5_000, 3, 7, 2)},
        "read": 5_000,
        "more": True,
        "refused": 2,
        "reasons": ["line 7: track is missing", f"line 9: no track has this ISRC: {'W' * 120}"],
        "twins": 2,
    }
    queue.finish(task, queue.DONE, report, None)
    return task
