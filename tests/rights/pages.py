"""The expected rights for every page. A new page needs a row here; one with a form also the fields to send."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from musicsvc.server.routes.route import SAFE, Access, Route
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.dashboards import report_links
from musicsvc.store.editing import offers
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, AlbumArtist, Artist, PendingListen, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import SLOT, window
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.plays.subjects import TRACK, Subject
from musicsvc.store.security import sessions as store_sessions
from tests.rights.table import endpoint
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support import sample_pages
from tests.support.page_client import PageClient
from tests.support.serving import Answer
from tests.support.shared_server import Shared

OWNER, STRANGER, ADMINISTRATOR = "owner", "stranger", "administrator"
REVOKED = "stranger whose API access is revoked"
SIGNED_IN = (OWNER, STRANGER, REVOKED, ADMINISTRATOR)
SIGNED_OUT = ("signed out", "suspended", "session ended")
VISITORS = (*SIGNED_OUT, *SIGNED_IN)
ADMINISTRATORS_PAGE = 404
NEEDS_API_ACCESS = 403


class PageWorld:
    """An account of the owner and one of the visitor, with their sessions."""

    def __init__(self, shared: Shared, number: int, who: str = OWNER) -> None:
        self.shared = shared
        self.domain = f"pages{number}.test"
        self.ids: dict[str, int] = {}
        self.sessions: dict[str, str] = {}
        self.do(lambda: self._create(who))

    def email(self, who: str) -> str:
        return f"{who.replace(' ', '-')}@{self.domain}"

    def do(self, unit: Callable[[], Any]) -> Any:
        """Return the result of a write transaction."""
        return self.shared.store.write(unit).result()

    def _create(self, visitor: str) -> None:
        now = self.shared.clock.now()
        for who in {OWNER, visitor} - {"signed out"}:
            admin = who == ADMINISTRATOR
            user = users.create(self.email(who), password_hash=PASSWORD_HASH, admin=admin, api_access=True, now=now)
            self.ids[who] = user.id
            self.sessions[who] = store_sessions.create(user, address="127.0.0.1", agent="Tests/1.0", now=now)
            if who == REVOKED:
                api_access.revoke(user, now=now)
            if who == "suspended":
                users.suspend(user, now=now)
            if who == "session ended":
                store_sessions.end_all(user.id)


@dataclass(frozen=True)
class PageRight:
    """The expected status for each kind of visitor who may see a page at all; the row says who that is.

    `make` returns the values of the path's parameters, of what belongs to the owner. `form`: the fields that are sent.
    `status` is that of success; `stranger`: the status for another account, if it differs.
    """

    make: Callable[[PageWorld], Mapping[str, Any]] = lambda _: {}
    form: Callable[[PageWorld], Mapping[str, Any]] = lambda _: {}
    status: int = 0
    stranger: int = 0
    others: Mapping[str, int] = field(default_factory=dict)  # further exceptions, by visitor
    query: str = ""

    def expected(self, route: Route) -> dict[str, int]:
        """Return the status for each kind of visitor."""
        success = self.status or (200 if route.method in SAFE else 303)
        found = dict.fromkeys(VISITORS, success)
        if route.access is not Access.OPEN:
            found |= dict.fromkeys(SIGNED_OUT, 303)
        if route.access is Access.ADMIN:
            found |= dict.fromkeys((OWNER, STRANGER, REVOKED), ADMINISTRATORS_PAGE)
        if self.stranger:
            found |= dict.fromkeys((STRANGER, REVOKED, ADMINISTRATOR), self.stranger)
        if route.access is Access.DEVELOPER:
            found[REVOKED] = NEEDS_API_ACCESS
        return found | dict(self.others)


def _password_link(world: PageWorld) -> dict[str, str]:
    owner = users.get(world.ids[OWNER])
    return {"link": password_links.create(owner, now=world.shared.clock.now()).secret}


def _session(world: PageWorld) -> dict[str, int]:
    return {"id": store_sessions.list(world.ids[OWNER], now=world.shared.clock.now())[0].id}


def _another_administrator(world: PageWorld) -> Mapping[str, Any]:
    """Create an administrator, so that the visitor is not the last one."""
    users.create(f"other@{world.domain}", admin=True, now=world.shared.clock.now())
    return {}


def played(kind: str) -> Callable[[PageWorld], Mapping[str, Any]]:
    """Return a function that creates an artist, album or track of the owner, for the path's parameter `id`."""

    def make(world: PageWorld) -> Mapping[str, Any]:
        return {"id": create(kind, world.ids[OWNER])}

    return make


def create(kind: str, user_id: int) -> int:
    artist = Artist.create(name="Trio", manager=user_id, created_at=1).id
    album = Album.create(name="Suite", created_at=2).id
    AlbumArtist.create(album=album, artist=artist, position=0)
    track = Track.create(name="Air", duration=1000, album=album, created_at=3).id
    TrackArtist.create(track=track, artist=artist, position=0)
    return {"artist": artist, "album": album, "track": track}[kind]


def _pair(kind: str) -> Callable[[PageWorld], Mapping[str, str]]:
    """Return a function that creates two artists, albums or tracks of the owner, and returns the form to merge them."""

    def make(world: PageWorld) -> Mapping[str, str]:
        return {name: str(world.do(lambda: create(kind, world.ids[OWNER]))) for name in ("merge", "into")}

    return make


def report_link(world: PageWorld) -> Mapping[str, Any]:
    """Create a link of the owner to the report of a track."""
    subject, now = Subject(TRACK, create("track", world.ids[OWNER])), world.shared.clock.now()
    row = report_links.create([subject], window("7-days", now), user_id=world.ids[OWNER], now=now)
    return {"id": row.id, "link": share_links.address(row.id, row.created_at, Site("")).rpartition("/")[2]}


def _token(world: PageWorld) -> dict[str, int]:
    owner = users.get(world.ids[OWNER])
    return {"id": tokens.create(owner, "laptop", now=world.shared.clock.now())[0].id}


def _account(world: PageWorld) -> Mapping[str, Any]:
    return {"id": world.ids[OWNER]}


def _another_account(world: PageWorld) -> dict[str, str]:
    """Create an account, and return the form that names it."""
    email = f"another@{world.domain}"
    world.do(lambda: users.create(email, now=world.shared.clock.now()))
    return {"email": email}


def _reporting(world: PageWorld) -> Mapping[str, Any]:
    """Store a play that the owner reported."""
    (listener,) = listeners.ensure([listeners.opaque_key("fan")]).values()
    track = Track.create(name="Air", duration=1000, created_at=3).id
    row = PlayRow(world.ids[OWNER], track, listener, b"", world.ids[OWNER] * SLOT, None, world.ids[OWNER])
    ingest.record([row])
    return _account(world)


def _request(world: PageWorld) -> Mapping[str, Any]:
    now = world.shared.clock.now()
    email = f"asks@{world.domain}"
    return {"id": api_access.request(email, "A player", "100 a day", "Engines Ltd", now=now).id}


def _act(
    make: Callable[[PageWorld], Mapping[str, Any]], form: Mapping[str, str] | None = None, **more: Any
) -> PageRight:
    return PageRight(make, form=lambda _: form or {}, **more)


def _file(world: PageWorld) -> Mapping[str, Any]:
    """Store that the owner has uploaded a file, which was checked."""
    return {"id": sample_pages.checked_file(world.ids[OWNER], "songs.csv", world.shared.clock.now())}


def _import(world: PageWorld) -> Mapping[str, Any]:
    """Store that the owner has imported a file."""
    run = runs.start("catalog", "songs.csv", world.ids[OWNER], {"tracks": Counts(new=2)}, 1, "page")
    runs.end_run(run, "import.done", 2, "page")
    return {"id": run}


def _pending(world: PageWorld) -> Mapping[str, Any]:
    create("track", world.ids[OWNER])  # so that there is one to be named
    values = {"names": 1, "artist_key": 2, "artist": "Nobody", "title": "Nothing", "received_at": 7}
    return {"id": PendingListen.create(user=world.ids[OWNER], slot=3, played_at=3 * SLOT, **values).id}


def _offer(by: str, to: str | None) -> Callable[[PageWorld], Mapping[str, Any]]:
    """Return a function that offers artists of the account `by`, the owner or another one. None: to administrators."""

    def make(world: PageWorld) -> Mapping[str, Any]:
        now = world.shared.clock.now()
        other = users.create(f"other@{world.domain}", now=now)
        sender = users.get(world.ids[OWNER]) if by == OWNER else other
        create("artist", sender.id)
        if to is None:
            offers.ask(sender, None, now=now)
        else:
            offers.create(sender, world.email(OWNER) if to == OWNER else other.email, (), now=now)
        return {"id": offers.sent(sender.id, now=now)[0].id}

    return make


def _manager(world: PageWorld) -> Mapping[str, Any]:
    create("artist", world.ids[OWNER])
    return {}


REASON = {"reason": "See the terms."}
NEW_TOKEN = PageRight(
    form=lambda _: {"name": "laptop", "password": PASSWORD}, status=200, others={REVOKED: NEEDS_API_ACCESS}
)
ANYBODY = PageRight()
DOWNLOAD = PageRight(form=lambda _: {"period": "7-days"}, status=200)
ALREADY = dict.fromkeys(SIGNED_IN, 303)  # who is signed in need not sign in
PAGES: Mapping[str, PageRight] = {
    "GET /": ANYBODY,
    "GET /sign-in": PageRight(others=ALREADY),
    "POST /sign-in": PageRight(form=lambda world: {"email": world.email(OWNER), "password": PASSWORD}),
    "POST /sign-out": ANYBODY,
    "GET /register": PageRight(others=ALREADY),
    "POST /register": PageRight(form=lambda world: {"email": f"new@{world.domain}", "password": PASSWORD}),
    "GET /password/{link}": PageRight(_password_link),
    "POST /password/{link}": PageRight(_password_link, form=lambda _: {"new_password": PASSWORD}),
    "GET /settings": ANYBODY,
    "POST /settings/name": PageRight(form=lambda _: {"display_name": "Clara"}),
    "POST /settings/password": PageRight(form=lambda _: {"password": PASSWORD, "new_password": f"{PASSWORD}!"}),
    "POST /settings/sessions/{id}/end": PageRight(_session, stranger=404),
    "POST /settings/sessions/end-others": ANYBODY,
    "GET /settings/data": ANYBODY,
    "POST /settings/data": PageRight(form=lambda _: {"password": PASSWORD}, status=200),
    "GET /settings/delete": ANYBODY,
    "POST /settings/delete": PageRight(_another_administrator, form=lambda _: {"password": PASSWORD}),
    "POST /settings/delete/hand-over": PageRight(
        _manager,
        form=lambda world: {"email": f"new@{world.domain}"},
        stranger=409,  # who manages no artist
    ),
    "POST /settings/delete/ask": PageRight(_manager, stranger=409),
    "GET /settings/offers/{id}": PageRight(_offer("other", OWNER), stranger=404),
    "POST /settings/offers/{id}/accept": PageRight(
        _offer("other", OWNER), form=lambda _: {"password": PASSWORD}, stranger=404
    ),
    "POST /settings/offers/{id}/refuse": PageRight(_offer("other", OWNER), stranger=404),
    "POST /settings/offers/{id}/take-back": PageRight(_offer(OWNER, "other"), stranger=404),
    "GET /insights/artist/{id}/hand-over": PageRight(played("artist"), stranger=403),
    "POST /insights/artist/{id}/hand-over": PageRight(
        played("artist"), form=lambda world: {"email": f"new@{world.domain}"}, stranger=403
    ),
    "GET /insights": ANYBODY,
    **{f"GET /insights/{kind}{form}": ANYBODY for kind in ("artists", "albums", "tracks") for form in ("", "/csv")},
    "GET /insights/artist/{id}": PageRight(played("artist"), stranger=403),
    "GET /insights/album/{id}": PageRight(played("album"), stranger=403),
    "GET /insights/track/{id}": PageRight(played("track"), stranger=403),
    "GET /insights/track/{id}/realtime": PageRight(played("track"), stranger=403),
    "POST /insights/artist/{id}/share": PageRight(played("artist"), status=201, stranger=403),
    "POST /insights/album/{id}/share": PageRight(played("album"), status=201, stranger=403),
    "POST /insights/track/{id}/share": PageRight(played("track"), status=201, stranger=403),
    **{
        f"{method} /insights/{noun}/{{id}}/edit": PageRight(played(noun), stranger=403)
        for noun in ("artist", "album", "track")
        for method in ("GET", "POST")
    },
    **{
        f"{method} /insights/{noun}/{{id}}/delete": PageRight(
            played(noun), stranger=403, status=409 if (method, noun) == ("POST", "artist") else 0
        )
        for noun in ("artist", "album", "track")
        for method in ("GET", "POST")
    },
    **{f"GET /insights/{noun}/new": ANYBODY for noun in ("artist", "album", "track")},
    "POST /insights/artist/new": _act(lambda _: {}, {"name": "Trio"}),
    "POST /insights/album/new": _act(lambda _: {}, {"name": "Suite"}, status=422),  # without an artist
    "POST /insights/track/new": _act(lambda _: {}, {"name": "Air"}, status=422),
    "GET /insights/compare": PageRight(query="?kind=album&q=a"),
    "POST /insights/compare/share": PageRight(status=422),  # nothing is chosen
    "GET /insights/duplicates": PageRight(query="?kind=track&page=2"),
    **{f"GET /insights/{noun}/merge": PageRight(query="?into=7") for noun in ("artist", "album", "track")},
    **{
        f"POST /insights/{noun}/merge": PageRight(form=_pair(noun), others={STRANGER: 403})
        for noun in ("artist", "album", "track")
    },
    "GET /insights/artist/split": PageRight(query="?into=7"),
    "POST /insights/artist/split": PageRight(
        form=lambda world: {"artist": str(world.do(lambda: create("artist", world.ids[OWNER]))), "into": "Ann\nBob"},
        others={STRANGER: 403},
    ),
    "POST /insights/export/csv": DOWNLOAD,
    "POST /insights/export/json": DOWNLOAD,
    "POST /insights/export/xlsx": DOWNLOAD,
    "POST /insights/export/pdf": DOWNLOAD,
    "GET /reports/{link}": PageRight(report_link),
    "POST /settings/share-links/{id}/end": PageRight(report_link, stranger=404),
    "GET /settings/developers": ANYBODY,
    "GET /settings/access": PageRight(status=303, others={REVOKED: 200}),  # the others have access already
    "POST /settings/access": PageRight(
        form=lambda _: {"use_case": "a page", "volume": "few", "organization": "Label"},
        status=409,
        others={REVOKED: 303},
    ),
    "POST /settings/purpose": _act(lambda _: {}, {"purpose": "music"}),
    "POST /settings/developers/tokens": NEW_TOKEN,
    "POST /settings/developers/player": NEW_TOKEN,
    "GET /settings/developers/player": PageRight(others={REVOKED: NEEDS_API_ACCESS}),
    **dict.fromkeys(("GET /settings/listens", "POST /settings/listens/dismiss"), ANYBODY),
    "POST /settings/listens/{id}/name": PageRight(_pending, form=lambda _: {"track": "1"}, stranger=404),
    "POST /settings/listens/{id}/dismiss": PageRight(_pending, stranger=404),
    "GET /settings/developers/tokens/{id}": PageRight(_token, stranger=404),
    "POST /settings/developers/tokens/{id}/regenerate": PageRight(
        _token, form=lambda _: {"password": PASSWORD}, status=200, stranger=404
    ),
    "POST /settings/developers/tokens/{id}/delete": PageRight(_token, stranger=404),
    "GET /import": ANYBODY,
    "POST /import": PageRight(form=lambda _: {"file": ("songs.csv", b"Title,Artist\nAir,Trio\n")}),
    "GET /import/{id}": PageRight(_file, stranger=404),
    "POST /import/{id}/columns": PageRight(_file, form=lambda _: {"artist": "Trio"}, stranger=404),
    "POST /import/{id}/start": PageRight(_file, stranger=404),
    "POST /import/{id}/stop": PageRight(_file, stranger=404),
    "POST /import/{id}/discard": PageRight(_file, stranger=404),
    "GET /import/{id}/refused.csv": PageRight(_file, status=404),  # it has no refused rows
    "GET /imports/{id}/undo": PageRight(_import, stranger=404),
    "POST /imports/{id}/undo": PageRight(_import, stranger=404),
    "GET /admin": PageRight(query="?show=decided"),
    "GET /admin/requests/{id}": PageRight(_request),
    "POST /admin/requests/{id}/approve": _act(_request, status=200),  # it shows the link of a new account
    "POST /admin/requests/{id}/deny": _act(_request, REASON),
    "POST /admin/leaving/{id}/dismiss": _act(_offer(OWNER, None)),
    "GET /admin/accounts": PageRight(query="?q=a"),
    "POST /admin/accounts": PageRight(form=lambda world: {"email": f"new@{world.domain}"}, status=200),
    "GET /admin/accounts/{id}": PageRight(_account),
    "POST /admin/accounts/{id}/password-link": _act(_account, status=200),
    "POST /admin/accounts/{id}/suspend": _act(_account, REASON),
    "POST /admin/accounts/{id}/reinstate": _act(_account),
    "POST /admin/accounts/{id}/grant-access": _act(_account),
    "POST /admin/accounts/{id}/revoke-access": _act(_account),
    "POST /admin/accounts/{id}/edit": PageRight(
        _account, form=lambda world: {"email": f"edited@{world.domain}", "display_name": "Edited"}
    ),
    "POST /admin/accounts/{id}/grant-plays": _act(_account),
    "POST /admin/accounts/{id}/make-admin": _act(_account),
    "POST /admin/accounts/{id}/end-admin": _act(_account),
    "POST /admin/accounts/{id}/assign-artists": PageRight(_account, form=_another_account),
    "GET /admin/accounts/{id}/delete": PageRight(_account),
    "POST /admin/accounts/{id}/delete": _act(_account),
    "POST /admin/accounts/{id}/withdraw-plays": _act(_reporting, status=200),  # it shows the plays
    "GET /admin/artists": PageRight(query="?q=a"),
    "GET /admin/artists/{id}": PageRight(played("artist")),
    "POST /admin/artists/{id}/assign": PageRight(played("artist"), form=_another_account),
    "GET /admin/tokens": PageRight(query="?q=a"),
    "GET /admin/tokens/{id}": PageRight(_token),
    "POST /admin/tokens/{id}/revoke": _act(_token, REASON),
    "POST /admin/tokens/{id}/reinstate": _act(_token),
    "GET /admin/abuse": PageRight(),
    "GET /admin/abuse/{id}": PageRight(_token),
    "GET /admin/activity": PageRight(query="?status=4xx"),
    "GET /admin/imports": PageRight(query="?before=99"),
    "GET /admin/imports/{id}/undo": PageRight(_import),
    "POST /admin/imports/{id}/undo": PageRight(_import),
    "GET /admin/backups": PageRight(),
    "POST /admin/backups": PageRight(),
    "GET /admin/health": PageRight(),
}


def right(route: Route) -> PageRight:
    return PAGES[endpoint(route)]


def path_of(world: PageWorld, route: Route) -> str:
    values = world.do(lambda: right(route).make(world))
    return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), route.path) + right(route).query


def who_may(route: Route) -> str:
    return ADMINISTRATOR if route.access is Access.ADMIN else OWNER


async def ask(browser: PageClient, world: PageWorld, route: Route, who: str) -> Answer:
    """Request the page as this visitor, on a subject of the owner that no other request has changed."""
    browser.cookies = {browser.cookie: world.sessions[who]} if who in world.sessions else {}
    path = path_of(world, route)
    if route.method in SAFE:
        return await browser.get(path)
    return await browser.post(path, right(route).form(world))
