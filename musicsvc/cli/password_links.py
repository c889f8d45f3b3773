"""Print one-time links to set a password. No mail is sent: the operator hands the link over."""

from __future__ import annotations

import sys

import typer

from musicsvc.cli import output
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.store.accounts import password_links

EVERY_ADDRESS = ("0.0.0.0:", "[::]:")


def link_json(session: Session, link: password_links.NewLink | None) -> JSON:
    """Return the link's address and expiry for the output of `--json`, null if there is no link."""
    return {
        "password_link": link and link.url(session.root("the link")[0]),
        "password_link_expires_at": link and output.format_time(link.expires_at),
    }


def print_link(session: Session, email: str, link: password_links.NewLink) -> None:
    """Print the address alone on stdout, so that it can be piped. In a terminal, add a hint on stderr."""
    root, hints = session.root("the link")
    if root.partition("://")[2].startswith(EVERY_ADDRESS):
        hints.append("The server listens on every address: replace the one in the link by the name of its machine.")
    if sys.stdout.isatty():
        hints[:0] = [f"Give this link to {email}. It sets the password once, within 24 hours, and is not shown again."]
    if hints:
        session.echo(" ".join(hints))
    typer.echo(link.url(root))
