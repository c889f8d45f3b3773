"""`musicsvc serve --demo`: a temporary database with sample data, a password, a token, and an adjustable clock."""

import secrets
from collections.abc import Mapping
from functools import partial

import typer

from musicsvc import scratch, secret_files
from musicsvc.cli.scoring import Scoring
from musicsvc.cli.session import Session
from musicsvc.clock import LAST, Clock, MovableClock, parse
from musicsvc.environment import DEMO_SECRETS
from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.server.demo.state import DemoState
from musicsvc.server.network.tls import is_loopback
from musicsvc.store import opening
from musicsvc.store.accounts import passwords, tokens, users
from musicsvc.store.schema import schema
from musicsvc.store.seeding import fixtures, worlds

DEMO = {
    "database_read_url": "",
    "registration.grants_access": True,
    "server.workers": 1,
    "backups.every_hours": 0,
}
PASSWORD_BYTES = 12
NOT_HERE = (
    "The demo listens on this machine only, because anybody who reaches it can move its clock and reset it. {} is"
    " another address; leave out --host and server.host."
)
SIGN_INS = (fixtures.DEMO_EMAIL, fixtures.ADMIN_EMAIL)


def run(
    session: Session, options: dict[str, object], now: str | None, speed: float, world: str, scoring: Scoring | None
) -> None:
    """Run the demo server until it is stopped, then delete its database.

    `now` and `speed` set the demo's clock, `world` selects its data. `scoring`: the report card of its clients.
    """
    if options.get("server.workers") not in {None, 1}:
        raise typer.BadParameter("--demo runs in one process. Remove --workers.")
    start = _start(now)
    clock = MovableClock(start, speed)
    session.settings()  # they name a folder for temporary files, where the system has none
    with scratch.folder(None) as folder:
        url, log = f"sqlite:///{folder / 'musicsvc.db'}", folder / "activity.db"
        settings = session.settings(options | DEMO | {"database_url": url, "activity.file": log})
        if not is_loopback(settings.server.host):
            raise Failure(NOT_HERE.format(settings.server.host))
        token, password = _secrets()
        demo = DemoState(clock, folder / "musicsvc.db")
        if scoring is not None:
            scoring.begin(demo)
        further = _prepare(url, start, world, token, password)
        demo.begin(start)

        def announce(root: str) -> None:
            if scoring is not None:
                scoring.announce(root)
            _announce(session, root, token, password, further)

        # The worker starts the clock, so that the token does not expire while the sample data is loaded.
        serving.serve(settings, clock, announce, check_database=partial(clock.set, start), demo=demo)


def _start(now: str | None) -> int:
    try:
        start = Clock().now() if now is None else parse(now)
    except ValueError:
        start = -1
    if not 0 <= start < LAST:
        raise typer.BadParameter(f"--now {now} is not a time from 1970 to 9998, such as 2026-01-31T12:00:00Z.")
    return start


def _secrets() -> tuple[str, str]:
    """Return the token and the password of the demo: new ones, unless variables fix them."""
    fixed_token, fixed_password = map(secret_files.find, DEMO_SECRETS)
    token = fixed_token.value if fixed_token else tokens.generate()
    if fixed_token and not tokens.well_formed(token):
        fault = "is not a valid token: its prefix, length or checksum is wrong. Use one printed by musicsvc."
        raise Failure(f"{fixed_token.source} {fault}")
    password = fixed_password.value if fixed_password else secrets.token_urlsafe(PASSWORD_BYTES)
    for email in SIGN_INS:
        problem = passwords.check(password, email=email, hosted=False)
        if problem := problem or (
            None if password.isprintable() else "The password must not contain control characters."
        ):
            raise Failure(f"{fixed_password.source if fixed_password else 'The password'}: {problem}")
    return token, password


def _prepare(url: str, now: int, world: str, token: str, password: str) -> Mapping[str, str]:
    """Create the database with the data of this world, with this token and with this password of both accounts.

    Return further tokens of the demo's account, by name.
    """
    schema.create(url)
    hashed = passwords.hash_password(password)

    def set_passwords() -> None:
        for email in SIGN_INS:
            users.set_password(users.by_email(email), password_hash=hashed, now=now, actor="fixtures")

    with opening.connect(url) as store:
        further = worlds.load(store, world, now=now, token=token)
        store.write(set_passwords).result()
    return further


def _announce(session: Session, root: str, token: str, password: str, further: Mapping[str, str]) -> None:
    session.echo("The demo has a temporary database, deleted when you stop it (Ctrl+C).")
    session.echo(f"Open {root} in a browser. API documentation: {root}/docs")
    session.echo("To test a client, its endpoints below /demo/ inject faults, move the clock and reset the data.")
    session.echo(f"Sign in as {fixtures.DEMO_EMAIL} with the password {password}")
    session.echo(f"Sign in as the administrator {fixtures.ADMIN_EMAIL} with the same password: {password}")
    session.echo(f"Token of {fixtures.DEMO_EMAIL}: {token}")
    for name, value in further.items():
        session.echo(f"Token of {fixtures.DEMO_EMAIL}, {name}: {value}")
    session.echo("Try:")
    typer.echo(f'curl -H "Authorization: Bearer {token}" {root}/api/v1/albums')
