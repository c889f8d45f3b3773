"""Pages to import, create, edit, merge and delete artists, albums and tracks, for accounts with API access."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from musicsvc.server.handlers.pages import editing, imports, merging
from musicsvc.server.routes.pages import page
from musicsvc.server.routes.route import SLOW, Access, Cost, Route, Runs
from musicsvc.server.schemas.pages.editing import NewQuery
from musicsvc.store.editing import edits
from musicsvc.store.editing.merging import Noun
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.undoing import runs

IMPORT = "/import"
FILE = f"{IMPORT}/{{id}}"
FIGURES = Cost(Runs.FIGURES)
get = partial(page, "GET", access=Access.DEVELOPER)
post = partial(page, "POST", access=Access.DEVELOPER)
FIND: Mapping[Noun, Callable[..., Any]] = {
    "artist": edits.find_artist,
    "album": edits.find_album,
    "track": edits.find_track,
}


def _pages(noun: Noun, find: Callable[..., Any]) -> tuple[Route, ...]:
    new, merge, row = f"/insights/{noun}/new", f"/insights/{noun}/merge", f"/insights/{noun}/{{id}}"
    edit, delete = f"{row}/edit", f"{row}/delete"
    return (
        get(new, partial(editing.show_new, noun)),
        post(new, partial(editing.create, noun), query=NewQuery, form=new, keyed=True),
        get(merge, partial(merging.show, noun), form=merge),
        post(merge, partial(merging.merge, noun), keyed=True),
        get(edit, partial(editing.show, noun), find=find),
        post(edit, partial(editing.save, noun), find=find, form=edit),
        get(delete, partial(editing.show_deletion, noun), find=find),
        post(delete, editing.delete, find=find, form=delete, keyed=True),
    )


# fmt: off
ROUTES: tuple[Route, ...] = (
    get(IMPORT, imports.show_all),
    post(IMPORT, imports.upload, form=IMPORT),
    get(FILE, imports.show, find=queue.get_own),
    post(f"{FILE}/columns", imports.change, find=queue.get_own, form=FILE, keyed=True),
    post(f"{FILE}/start", imports.start, find=queue.get_own, form=FILE, keyed=True),
    post(f"{FILE}/stop", imports.stop, find=queue.get_own, form=FILE),
    post(f"{FILE}/discard", imports.discard, find=queue.get_own, form=FILE, keyed=True),
    get(f"{FILE}/refused.csv", imports.send_refused, find=queue.get_own, cost=SLOW),
    get("/imports/{id}/undo", partial(imports.preview_undo, IMPORT), find=runs.get_own, cost=FIGURES),
    post("/imports/{id}/undo", partial(imports.undo, IMPORT), find=runs.get_own, keyed=True),
    page("GET", merging.TWINS, merging.show_twins, Access.SESSION, cost=FIGURES),
    get("/insights/artist/split", merging.show_split, form="/insights/artist/split"),
    post("/insights/artist/split", merging.split, form="/insights/artist/split", keyed=True),
    *(route for noun, find in FIND.items() for route in _pages(noun, find)),
)
# fmt: on
