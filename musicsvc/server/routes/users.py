"""Endpoints to register, sign in, search and follow accounts, and to manage the caller's access tokens."""

from musicsvc.server.handlers import accounts, likes, tokens, users
from musicsvc.server.routes.route import EXTENSION, URGENT, V1, Access, Cost, Docs, PasswordOf, RateLimit, Route
from musicsvc.server.schemas.accounts import FoundUsers, LoggedIn, NewToken, Registered, TokenListed
from musicsvc.server.schemas.answers import Paged, Success, UserSummary, one
from musicsvc.server.schemas.catalog import Artist, Track
from musicsvc.store.accounts import users as user_store
from musicsvc.store.accounts.tokens import get_own

TOKENS = f"{V1}/access-tokens"


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/auth/register", accounts.register, Access.OPEN, answer=Registered,
          limit=RateLimit.REGISTER, enabled_if=accounts.registration_open, cost=Cost(prepare=accounts.hash_password)),
    Route("GET", f"{V1}/users/me", users.me, docs=EXTENSION, answer=one("user", UserSummary)),
    Route("GET", f"{V1}/users/me/followed-users", users.list_followed, answer=Paged[UserSummary]),
    Route("GET", f"{V1}/users/me/followers", users.list_followers, answer=Paged[UserSummary]),
    Route("GET", f"{V1}/users/me/likes", likes.list_likes, docs=EXTENSION, answer=Paged[Track]),
    Route("GET", f"{V1}/users/me/reposts", likes.list_reposts, docs=EXTENSION, answer=Paged[Track]),
    Route("GET", f"{V1}/users/me/artists", users.list_artists, docs=EXTENSION, answer=Paged[Artist]),
    Route("GET", f"{V1}/users/search", users.search, answer=FoundUsers),
    Route("POST", f"{V1}/users/{{id}}/follow", users.follow, find=user_store.get, answer=Success,
          docs=Docs(extension=True, raises=(422,), example={"id": 2})),
    Route("POST", f"{V1}/users/{{id}}/unfollow", users.unfollow, find=user_store.get, docs=EXTENSION, answer=Success),
    Route("POST", f"{V1}/auth/login", accounts.log_in, Access.OPEN, answer=LoggedIn,
          password=PasswordOf.NAMED, docs=Docs(extension=True, raises=(403, 422))),
    Route("GET", TOKENS, tokens.index, answer=Paged[TokenListed], docs=EXTENSION),
    Route("POST", TOKENS, tokens.create, status=201, answer=NewToken, docs=EXTENSION, password=PasswordOf.CALLER),
    Route("DELETE", f"{TOKENS}/{{id}}", tokens.delete, find=get_own, private=True, answer=Success, docs=EXTENSION,
          cost=URGENT),
)
# fmt: on
