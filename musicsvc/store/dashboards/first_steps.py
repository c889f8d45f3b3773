"""The first steps of an account: its name, access, catalog, a cover and plays, or a token and a request with it.

Everything is looked up by an index, and nothing is counted, so that the first page is as fast for a large catalog.
"""

from datetime import date
from typing import Literal, NamedTuple, cast

from musicsvc.store.accounts import api_access, users
from musicsvc.store.accounts.api_access import AccessState
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.accounts.users import Purpose
from musicsvc.store.catalog import artists
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.models import AccessRequest, Album, AlbumArtist, Artist, Token, Track, TrackArtist, User
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.subjects import ACCOUNT

LOOKED_AT = 1_000  # albums and tracks of an account among which a cover is sought
StepName = Literal["name", "purpose", "access", "catalog", "cover", "plays", "token", "call"]


class FirstSteps(NamedTuple):
    """The steps in their order, each with whether it is done, and what the page says about them.

    `purpose`: as chosen or, by what the account has, as presumed. `coverless`: the kind and id of an album or track
    that could get a cover.
    """

    user: User
    purpose: Purpose | None
    access: AccessState
    latest: AccessRequest | None
    asks_again_at: int
    steps: dict[StepName, bool]
    coverless: tuple[str, int] | None = None
    first_play: date | None = None

    @property
    def next(self) -> StepName | None:
        """The first step that is not done, or None."""
        return next((name for name, done in self.steps.items() if not done), None)


def load(user_id: int) -> FirstSteps:
    """Return the first steps of an account. What it is for decides which they are."""
    user = users.get(user_id)
    latest = api_access.latest_request(user)
    purpose = cast("Purpose | None", user.purpose)
    manages, tokens = artists.manages_any(user_id), Token.select().where(Token.user == user_id)
    if purpose is None:
        purpose = "music" if manages else "program" if tokens.exists() else None
    access = api_access.state_of(user, latest)
    steps: dict[StepName, bool] = {"name": True, "access": access == "granted"}
    found = FirstSteps(user, purpose, access, latest, api_access.asks_again_at(latest), steps)
    if purpose is None:
        return found._replace(steps={"name": True, "purpose": False, "access": access == "granted"})
    if purpose == "program":
        used = tokens.where(Token.last_used_at.is_null(is_null=False))
        return found._replace(steps=steps | {"token": tokens.exists(), "call": used.exists()})
    coverless, covered = _cover(user_id)
    first = first_plays.by_id(ACCOUNT, [user_id]).get(user_id)
    steps |= {"catalog": coverless is not None, "cover": covered, "plays": first is not None}
    return found._replace(steps=steps, coverless=coverless, first_play=None if first is None else to_date(first))


def _cover(user_id: int) -> tuple[tuple[str, int] | None, bool]:
    """Return the kind and id of an album, or without albums of a track, and whether any of them has a cover."""
    mine = Artist.select(Artist.id).where(managed_by(user_id))
    example, covered = None, False
    for kind, model, of in (("track", Track, TrackArtist.track), ("album", Album, AlbumArtist.album)):
        some = of.model.select(of).where(of.model.artist.in_(mine)).limit(LOOKED_AT)
        first = some.limit(1).tuples().first()
        example = example if first is None else (kind, first[0])
        covered = covered or model.select().where(model.id.in_(some), model.image.is_null(is_null=False)).exists()
    return example, covered
