"""Pages of administration, for administrators only."""

from functools import partial

from musicsvc.server.handlers.admin import accounts, activity, artists, health, tokens
from musicsvc.server.handlers.pages import imports, leaving
from musicsvc.server.routes.pages import page
from musicsvc.server.routes.route import NO_STORE, SLOW, URGENT, Access, Route
from musicsvc.store.accounts import api_access, users
from musicsvc.store.accounts import tokens as stored_tokens
from musicsvc.store.catalog import artists as stored_artists
from musicsvc.store.editing import offers
from musicsvc.store.importing.undoing import runs

REQUEST, ACCOUNT, TOKEN = "/admin/requests/{id}", "/admin/accounts/{id}", "/admin/tokens/{id}"
ARTIST, IMPORTS, BACKUPS = "/admin/artists/{id}", "/admin/imports", "/admin/backups"
request = partial(page, access=Access.ADMIN, find=api_access.get)
account = partial(page, access=Access.ADMIN, find=users.get)
artist = partial(page, access=Access.ADMIN, find=stored_artists.get)
token = partial(page, access=Access.ADMIN, find=stored_tokens.get)
admin = partial(page, access=Access.ADMIN)

# fmt: off
ROUTES: tuple[Route, ...] = (
    admin("GET", "/admin", accounts.list_requests),
    request("GET", REQUEST, accounts.show_request),
    request("POST", f"{REQUEST}/approve", accounts.approve, form=REQUEST, keyed=True),
    request("POST", f"{REQUEST}/deny", accounts.deny, form=REQUEST, keyed=True),
    admin("POST", "/admin/leaving/{id}/dismiss", leaving.dismiss, find=offers.get_asked, keyed=True),
    admin("GET", "/admin/accounts", accounts.search),
    admin("POST", "/admin/accounts", accounts.create, form="/admin/accounts", keyed=True),
    account("GET", ACCOUNT, accounts.show),
    account("POST", f"{ACCOUNT}/password-link", accounts.create_link, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/edit", accounts.edit, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/suspend", accounts.suspend, form=ACCOUNT, cost=URGENT),
    account("POST", f"{ACCOUNT}/reinstate", accounts.reinstate, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/grant-access", accounts.grant, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/revoke-access", accounts.revoke, form=ACCOUNT, cost=URGENT),
    account("POST", f"{ACCOUNT}/grant-plays", accounts.grant_plays, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/make-admin", accounts.make_admin, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/end-admin", accounts.end_admin, form=ACCOUNT, cost=URGENT),
    account("POST", f"{ACCOUNT}/assign-artists", accounts.assign_artists, form=ACCOUNT),
    account("GET", f"{ACCOUNT}/delete", accounts.show_deletion),
    account("POST", f"{ACCOUNT}/delete", accounts.delete, form=f"{ACCOUNT}/delete", cost=SLOW, keyed=True),
    account("POST", f"{ACCOUNT}/withdraw-plays", accounts.withdraw_plays, form=ACCOUNT),
    admin("GET", "/admin/artists", artists.search),
    artist("GET", ARTIST, artists.show),
    artist("POST", f"{ARTIST}/assign", artists.assign, form=ARTIST),
    admin("GET", "/admin/tokens", tokens.search),
    token("GET", TOKEN, tokens.show),
    token("POST", f"{TOKEN}/revoke", tokens.revoke, form=TOKEN, cost=URGENT),
    token("POST", f"{TOKEN}/reinstate", tokens.reinstate, form=TOKEN),
    admin("GET", "/admin/abuse", tokens.list_abuse),
    admin("GET", "/admin/abuse/{id}", tokens.explain_abuse, cost=NO_STORE),
    admin("GET", "/admin/activity", activity.show, cost=NO_STORE),
    admin("GET", IMPORTS, imports.show_everybodys),
    admin("GET", f"{IMPORTS}/{{id}}/undo", partial(imports.preview_undo, IMPORTS), find=runs.get),
    admin("POST", f"{IMPORTS}/{{id}}/undo", partial(imports.undo, IMPORTS), find=runs.get, keyed=True),
    admin("GET", BACKUPS, health.list_backups, cost=NO_STORE),
    admin("POST", BACKUPS, health.create_backup, form=BACKUPS, cost=NO_STORE),
    admin("GET", "/admin/health", health.show, cost=NO_STORE),
)
# fmt: on
