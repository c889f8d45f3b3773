"""Endpoints to register, sign in, search and follow accounts, to manage access tokens, and to request API access."""

from musicsvc.server.handlers import access, accounts, likes, tokens, users
from musicsvc.server.routes.route import (
    ACCESS_REQUESTS,
    URGENT,
    V1,
    Access,
    Added,
    Cost,
    Docs,
    PasswordOf,
    RateLimit,
    Route,
)
from musicsvc.server.schemas.accounts import AccessRequested, FoundUsers, LoggedIn, NewToken, Registered, TokenListed
from musicsvc.server.schemas.answers import Paged, Success, UserSummary, one
from musicsvc.server.schemas.catalog import Artist, Track
from musicsvc.store.accounts import users as user_store
from musicsvc.store.accounts.tokens import get_own

TOKENS = f"{V1}/access-tokens"


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/auth/register", accounts.register, Access.OPEN, answer=Registered,
          limit=RateLimit.REGISTER, enabled_if=accounts.registration_open, cost=Cost(prepare=accounts.hash_password)),
    Added("GET", f"{V1}/users/me", users.me, answer=one("user", UserSummary)),
    Route("GET", f"{V1}/users/me/followed-users", users.list_followed, answer=Paged[UserSummary]),
    Route("GET", f"{V1}/users/me/followers", users.list_followers, answer=Paged[UserSummary]),
    Added("GET", f"{V1}/users/me/likes", likes.list_likes, answer=Paged[Track]),
    Added("GET", f"{V1}/users/me/reposts", likes.list_reposts, answer=Paged[Track]),
    Added("GET", f"{V1}/users/me/artists", users.list_artists, answer=Paged[Artist]),
    Route("GET", f"{V1}/users/search", users.search, answer=FoundUsers),
    Route("POST", f"{V1}/users/{{id}}/follow", users.follow, find=user_store.get, answer=Success,
          docs=Docs(extension=True, raises=(422,), example={"id": 2})),
    Added("POST", f"{V1}/users/{{id}}/unfollow", users.unfollow, find=user_store.get, answer=Success),
    Route("POST", f"{V1}/auth/login", accounts.log_in, Access.OPEN, answer=LoggedIn,
          password=PasswordOf.NAMED, docs=Docs(extension=True, raises=(403, 422))),
    Added("GET", TOKENS, tokens.index, answer=Paged[TokenListed]),
    Added("POST", TOKENS, tokens.create, status=201, answer=NewToken, password=PasswordOf.CALLER),
    Added("DELETE", f"{TOKENS}/{{id}}", tokens.delete, find=get_own, private=True, answer=Success, cost=URGENT),
    Route("POST", ACCESS_REQUESTS, access.request, Access.ACCOUNT, status=201, keyed=True,
          answer=one("access_request", AccessRequested), docs=Docs(extension=True, raises=(409,))),
    Route("GET", f"{ACCESS_REQUESTS}/me", access.show, Access.ACCOUNT,
          answer=one("access_request", AccessRequested), docs=Docs(extension=True, raises=(404,))),
)
# fmt: on
