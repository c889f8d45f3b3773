"""Ann and Ben build a playlist with the client that openapi-python-client generated, on their bad days too."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

import httpx
from generated import AuthenticatedClient, Client
from generated.api.accounts import accounts_log_in, accounts_register
from generated.api.clock import clock_move
from generated.api.exports import exports_export_json
from generated.api.invites import invites_accept, invites_create, invites_index, invites_list_collaborators
from generated.api.playlists import (
    playlists_add_tracks,
    playlists_create,
    playlists_delete,
    playlists_index,
    playlists_list_tracks,
    playlists_move_track,
    playlists_remove_tracks,
)
from generated.api.plays import plays_report
from generated.api.search import search_index
from generated.api.tracks import tracks_index
from generated.models import (
    ClockIn,
    ExportIn,
    Found,
    FoundExport,
    Invitation,
    Invited,
    InviteIn,
    LoggedIn,
    LoginIn,
    MoveIn,
    OnePlaylist,
    PagedInvitation,
    PagedPlaylist,
    PagedTrack,
    PagedUserSummary,
    PlayIn,
    Playlist,
    PlaylistIn,
    PlaysIn,
    Registered,
    RegisterIn,
    Reported,
    Success,
    Track,
    TrackRow,
    TracksIn,
    TracksOut,
)
from generated.types import Response
from resilient import Refused, Unknown, send, settle

R = TypeVar("R")
T = TypeVar("T")
PASSWORD = "three romances for violin"
NAME = "A story of two"


class Page(Protocol[R]):
    @property
    def data(self) -> list[R]: ...
    @property
    def last_page(self) -> int: ...


class Paged(Protocol[R]):
    @property
    def pagination(self) -> Page[R]: ...


@dataclass
class App:
    """The app of one person, on a device of its own. `refused`: what it has shown to the person."""

    root: str
    email: str
    timeout: httpx.Timeout
    anonymous: Client = field(init=False)
    client: AuthenticatedClient = field(init=False)
    user_id: int = field(init=False)
    refused: list[tuple[int, str]] = field(default_factory=list)
    waited: float = 0

    def __post_init__(self) -> None:
        self.anonymous = Client(self.root, timeout=self.timeout)

    def wait(self, seconds: float) -> None:
        """Let time pass, by the clock of the demo."""
        self.waited += seconds
        clock_move.sync(client=self.anonymous, body=ClockIn(advance=f"{math.ceil(seconds)}s"))

    def sign_in(self) -> bool:
        """Get a new token, and return whether the account exists."""
        body = LoginIn(email=self.email, password=PASSWORD, token_name="A story")
        log_in = partial(accounts_log_in.sync_detailed, client=self.anonymous, body=body)
        try:
            user = send(LoggedIn, log_in, self.wait, repeatable=True).user
        except Refused as error:
            if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            return False
        self.client = AuthenticatedClient(self.root, token=user.access_token, timeout=self.timeout)
        self.user_id = user.id
        return True

    def register(self) -> None:
        body = RegisterIn(email=self.email, password=PASSWORD)
        register = partial(accounts_register.sync_detailed, client=self.anonymous, body=body)
        send(Registered, register, self.wait, repeatable=False)

    def read(self, kind: type[T], call: Callable[[], Response[Any]]) -> T:
        return send(kind, call, self.wait, repeatable=True, sign_in=self.sign_in)

    def write(self, kind: type[T], call: Callable[[], Response[Any]]) -> T:
        return send(kind, call, self.wait, repeatable=False, sign_in=self.sign_in)

    def read_all(self, kind: type[Paged[R]], call: Callable[[int], Response[Any]]) -> list[R]:
        """Return the rows of all pages of a list."""
        page = self.read(kind, lambda: call(1)).pagination
        rows = [*page.data]
        for number in range(2, page.last_page + 1):
            rows += self.read(kind, partial(call, number)).pagination.data
        return rows

    def join(self) -> None:
        settle(self.sign_in, self.register)

    def press(self, button: Callable[[], T]) -> T:
        """Do what the person asks for. Show what is refused; the person reads it, and asks again."""
        while len(self.refused) < 100:
            try:
                return button()
            except Refused as error:
                self.refused.append((error.status, str(error)))
        raise Unknown


def find_tracks(app: App, words: str) -> list[Track]:
    """Return the tracks that the search finds, and after them all others."""
    found = app.read(Found, lambda: search_index.sync_detailed(client=app.client, q=words)).tracks
    listed = app.read_all(PagedTrack, lambda page: tracks_index.sync_detailed(client=app.client, page=page, perPage=7))
    return [*{track.id: track for track in (*found, *listed)}.values()]


def list_playlists(app: App) -> list[Playlist]:
    return app.read_all(PagedPlaylist, lambda page: playlists_index.sync_detailed(client=app.client, page=page))


def create_playlist(app: App) -> Playlist:
    """Create the playlist if there is none of this name. Of several, which copies of a request made, keep one."""
    body = PlaylistIn(name=NAME)

    def look() -> Playlist | None:
        found = [playlist for playlist in list_playlists(app) if playlist.name == NAME]
        for playlist in found[1:]:
            delete_playlist(app, playlist.id)
        return found[0] if found else None

    return settle(
        look, lambda: app.write(OnePlaylist, lambda: playlists_create.sync_detailed(client=app.client, body=body))
    )


def list_tracks(app: App, playlist: int) -> list[int]:
    call = partial(playlists_list_tracks.sync_detailed, playlist, perPage=3)
    return [track.id for track in app.read_all(PagedTrack, lambda page: call(client=app.client, page=page))]


def arrange(app: App, playlist: int, wanted: list[int]) -> None:
    """Make the playlist consist of these tracks in this order."""
    held: list[int] = []

    def look() -> bool:
        held[:] = list_tracks(app, playlist)
        return held == wanted

    def change() -> None:
        surplus = [track for track in {*held} if held.count(track) > wanted.count(track)]
        missing = [track for track in wanted if track not in held]
        if surplus:
            call = partial(playlists_remove_tracks.sync_detailed, body=TracksOut(ids=surplus))
        elif missing:
            call = partial(playlists_add_tracks.sync_detailed, body=TracksIn(ids=missing))
        else:
            to = next(at for at, track in enumerate(wanted) if held[at] != track)
            call = partial(playlists_move_track.sync_detailed, body=MoveIn(from_=held.index(wanted[to]) + 1, to=to + 1))
        app.write(OnePlaylist, lambda: call(playlist, client=app.client))

    settle(look, change)


def list_collaborators(app: App, playlist: int) -> list[str]:
    call = invites_list_collaborators.sync_detailed
    listed = app.read_all(PagedUserSummary, lambda page: call(playlist, client=app.client, page=page))
    return [user.display_name for user in listed]


def list_invitations(app: App) -> list[Invitation]:
    return app.read_all(PagedInvitation, lambda page: invites_index.sync_detailed(client=app.client, page=page))


def invite(app: App, guest: App, playlist: int) -> None:
    """Invite the guest, who says whether the invitation is there, because only guests see it."""
    call = partial(invites_create.sync_detailed, playlist, body=InviteIn(user_id=guest.user_id))

    def look() -> bool:
        return any(found.playlist.id == playlist for found in list_invitations(guest))

    settle(look, lambda: app.write(Invited, lambda: call(client=app.client)))


def accept(app: App, playlist: int) -> None:
    def look() -> bool:
        return any(found.id == playlist for found in list_playlists(app))

    settle(look, lambda: app.write(OnePlaylist, lambda: invites_accept.sync_detailed(playlist, client=app.client)))


def delete_playlist(app: App, playlist: int) -> None:
    def look() -> bool:
        return all(found.id != playlist for found in list_playlists(app))

    settle(look, lambda: app.write(Success, lambda: playlists_delete.sync_detailed(playlist, client=app.client)))


def report_plays(app: App, tracks: list[int], last: datetime) -> int:
    """Report a play of each track. Each has an id, so that the report can be sent again."""
    plays = [
        PlayIn(track_id=track, played_at=last - timedelta(minutes=5 * at), duration_ms=60_000, client_id=f"story-{at}")
        for at, track in enumerate(tracks)
    ]
    reported = app.read(Reported, lambda: plays_report.sync_detailed(client=app.client, body=PlaysIn(plays=plays)))
    return reported.accepted + reported.repeated


def export_plays(app: App) -> list[list[int]]:
    """Export the figures of the tracks that the account manages, and return the plays of each."""
    export = app.read(FoundExport, lambda: exports_export_json.sync_detailed(client=app.client, body=ExportIn()))
    return [[row.track_id, row.plays_total] for row in export.data.rows if isinstance(row, TrackRow)]


def tell(root: str, words: str, now: datetime, timeout: httpx.Timeout) -> dict[str, Any]:
    """Let Ann and Ben build a playlist; return what they see."""
    ann, ben = App(root, "demo@musicsvc.test", timeout), App(root, "ben@example.test", timeout)
    for app in (ann, ben):
        app.press(app.join)
    tracks = ann.press(lambda: find_tracks(ann, words))
    ids = [track.id for track in tracks[:5]]
    playlist = ann.press(lambda: create_playlist(ann)).id
    ann.press(lambda: arrange(ann, playlist, ids[:3]))
    ann.press(lambda: invite(ann, ben, playlist))
    ben.press(lambda: accept(ben, playlist))
    ben.press(lambda: arrange(ben, playlist, ids))
    ben.press(lambda: arrange(ben, playlist, [ids[4], *ids[:4]]))
    told = {
        "found": [track.name for track in tracks],
        "playlist": [app.press(partial(list_tracks, app, playlist)) for app in (ann, ben)],
        "collaborators": ann.press(lambda: list_collaborators(ann, playlist)),
        "reported": ann.press(lambda: report_plays(ann, ids, now)),
        "plays": ann.press(lambda: export_plays(ann)),
    }
    ann.press(lambda: delete_playlist(ann, playlist))
    left = [found.name for app in (ann, ben) for found in app.press(partial(list_playlists, app))]
    return {**told, "left": left, "refused": ann.refused + ben.refused, "waited": ann.waited + ben.waited}


if __name__ == "__main__":
    for line in sys.stdin:  # each asks for one story
        root, words, now, seconds = json.loads(line)
        timeout = httpx.Timeout(float(seconds))  # a generated client has none by default
        print(json.dumps(tell(root, words, datetime.fromisoformat(now), timeout)), flush=True)
