"""Print one-time links to set a password. No mail is sent: the operator hands the link over."""

import sys
from typing import TYPE_CHECKING

import typer

from musicsvc.cli import output
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session

if TYPE_CHECKING:
    from musicsvc.store.accounts.password_links import NewLink


def link_json(session: Session, link: "NewLink | None") -> JSON:
    """Return the link's address and expiry for the output of `--json`, null if there is no link."""
    return {
        "password_link": link and link.url(_root(session)),
        "password_link_expires_at": link and output.format_time(link.expires_at),
    }


def print_link(session: Session, email: str, link: "NewLink") -> None:
    """Print the address alone on stdout, so that it can be piped. In a terminal, add a hint on stderr."""
    if sys.stdout.isatty():
        session.echo(f"Give this link to {email}. It sets the password once, within 24 hours, and is not shown again.")
    typer.echo(link.url(_root(session)))


def _root(session: Session) -> str:
    from musicsvc.networks import root_url

    return root_url(session.settings().server)
