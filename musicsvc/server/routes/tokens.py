"""Endpoints to sign in with e-mail and password, and to manage the caller's access tokens."""

from musicsvc.server.handlers import accounts, tokens
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Access, PasswordOf, Route
from musicsvc.server.schemas.accounts import LoggedIn, LoginIn
from musicsvc.server.schemas.answers import Paged, Success
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.tokens import NewToken, TokenIn, TokenListed
from musicsvc.store.accounts.tokens import get_own

ALL = f"{V1}/access-tokens"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/auth/login", accounts.log_in, Access.OPEN, body=LoginIn, answer=LoggedIn, extension=True,
          password=PasswordOf.NAMED, raises=(403, 422)),
    Route("GET", ALL, tokens.index, query=Pages, answer=Paged[TokenListed], extension=True),
    Route("POST", ALL, tokens.create, status=201, body=TokenIn, answer=NewToken, extension=True,
          password=PasswordOf.CALLER),
    Route("DELETE", f"{ALL}/{{id}}", tokens.delete, find=get_own, private=True, answer=Success, extension=True,
          urgent=True),
)
# fmt: on
