"""Pages of administration, for administrators only."""

from functools import partial

from musicsvc.server.handlers.admin import (
    abuse,
    accounts,
    activity,
    artists,
    backups,
    deletion,
    health,
    imports,
    plays,
    requests,
    tokens,
)
from musicsvc.server.handlers.pages import imports as pages_of_imports
from musicsvc.server.routes.pages import page
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.schemas.pages.admin import (
    AccountForm,
    ActivityQuery,
    ArtistsQuery,
    AssignForm,
    DeletionForm,
    EditAccountForm,
    HealthQuery,
    OlderQuery,
    ReasonForm,
    RequestsQuery,
    SearchQuery,
    WithdrawalForm,
)
from musicsvc.store.accounts import api_access, users
from musicsvc.store.accounts import tokens as stored_tokens
from musicsvc.store.catalog import artists as stored_artists
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
    admin("GET", "/admin", requests.show, query=RequestsQuery),
    request("GET", REQUEST, requests.show_one),
    request("POST", f"{REQUEST}/approve", requests.approve, form=REQUEST),
    request("POST", f"{REQUEST}/deny", requests.deny, body=ReasonForm, form=REQUEST),
    admin("GET", "/admin/accounts", accounts.search, query=SearchQuery),
    admin("POST", "/admin/accounts", accounts.create, body=AccountForm, form="/admin/accounts"),
    account("GET", ACCOUNT, accounts.show),
    account("POST", f"{ACCOUNT}/password-link", accounts.create_link, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/edit", accounts.edit, body=EditAccountForm, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/suspend", accounts.suspend, body=ReasonForm, form=ACCOUNT, urgent=True),
    account("POST", f"{ACCOUNT}/reinstate", accounts.reinstate, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/grant-access", accounts.grant, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/revoke-access", accounts.revoke, form=ACCOUNT, urgent=True),
    account("POST", f"{ACCOUNT}/grant-plays", accounts.grant_plays, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/make-admin", accounts.make_admin, form=ACCOUNT),
    account("POST", f"{ACCOUNT}/end-admin", accounts.end_admin, form=ACCOUNT, urgent=True),
    account("POST", f"{ACCOUNT}/assign-artists", accounts.assign_artists, body=AssignForm, form=ACCOUNT),
    account("GET", f"{ACCOUNT}/delete", deletion.show),
    account("POST", f"{ACCOUNT}/delete", deletion.delete, body=DeletionForm, form=f"{ACCOUNT}/delete"),
    account("POST", f"{ACCOUNT}/withdraw-plays", plays.withdraw, body=WithdrawalForm, form=ACCOUNT),
    admin("GET", "/admin/artists", artists.search, query=ArtistsQuery),
    artist("GET", ARTIST, artists.show),
    artist("POST", f"{ARTIST}/assign", artists.assign, body=AssignForm, form=ARTIST),
    admin("GET", "/admin/tokens", tokens.search, query=SearchQuery),
    token("GET", TOKEN, tokens.show),
    token("POST", f"{TOKEN}/revoke", tokens.revoke, body=ReasonForm, form=TOKEN, urgent=True),
    token("POST", f"{TOKEN}/reinstate", tokens.reinstate, form=TOKEN),
    admin("GET", "/admin/abuse", abuse.show, query=OlderQuery),
    admin("GET", "/admin/abuse/{id}", abuse.explain, no_store=True),
    admin("GET", "/admin/activity", activity.show, query=ActivityQuery, no_store=True),
    admin("GET", IMPORTS, imports.show, query=OlderQuery),
    admin("GET", f"{IMPORTS}/{{id}}/undo", pages_of_imports.preview_undo(IMPORTS), find=runs.get),
    admin("POST", f"{IMPORTS}/{{id}}/undo", pages_of_imports.undo(IMPORTS), find=runs.get),
    admin("GET", BACKUPS, backups.show, no_store=True),
    admin("POST", BACKUPS, backups.create, form=BACKUPS, no_store=True),
    admin("GET", "/admin/health", health.show, query=HealthQuery, no_store=True),
)
# fmt: on
