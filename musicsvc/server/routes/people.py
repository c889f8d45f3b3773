"""Accounts and what they do to each other."""

from musicsvc.server.handlers import accounts
from musicsvc.server.route import Access, Route
from musicsvc.server.routes.paths import V1
from musicsvc.server.schemas import answers
from musicsvc.server.schemas.accounts import RegisterIn

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/auth/register", accounts.register, Access.OPEN, body=RegisterIn, answer=answers.Registered,
          gate=accounts.registration_open, prepare=accounts.hash_password, forbids=True),
)
# fmt: on
