"""Lists of first steps, for pages that have nothing to show yet."""

from typing import NamedTuple

from musicsvc.store.accounts import api_access, users
from musicsvc.store.security.sessions import SessionIdentity


class Step(NamedTuple):
    """A text, the path of its page, and whether it is done. Without a path, it waits for an earlier step."""

    text: str
    path: str | None
    done: bool


def first_play(caller: SessionIdentity, *, tracks: bool, path: str = "/import") -> list[Step]:
    """Return the steps to the first play of artists, albums or tracks.

    `tracks`: whether they have tracks. `path`: of the page that adds tracks.
    """
    plays = "a sheet of plays, or the history of another service"
    steps = [
        Step("Import a sheet of your tracks" if path == "/import" else "Add the tracks", path, tracks),
        Step(f"Import {plays}" if caller.reports_plays else f"Ask to import {plays}", "/import", done=False),
        Step("Or let a player or shop report each play, with a token of yours", "/settings/developers", done=False),
    ]
    access = Step("Ask for access, to add music and plays", "/settings/access", caller.api_access)
    user = users.get(caller.user_id)
    if api_access.state_of(user, api_access.latest_request(user)) == "pending":
        access = Step("Wait for access, which an administrator decides about", None, done=False)
    return [access, *(each if caller.api_access else each._replace(path=None) for each in steps)]
