"""Pages to import files, and to undo imports."""

from functools import partial

from musicsvc.server.handlers.pages import imports
from musicsvc.server.routes.pages import page
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.schemas.pages.admin import OlderQuery
from musicsvc.server.schemas.pages.imports import ColumnsForm, UploadForm
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.undoing import runs

IMPORT = "/import"
FILE = f"{IMPORT}/{{id}}"
get = partial(page, "GET", access=Access.DEVELOPER)
post = partial(page, "POST", access=Access.DEVELOPER)

# fmt: off
ROUTES: tuple[Route, ...] = (
    get(IMPORT, imports.show_all, query=OlderQuery),
    post(IMPORT, imports.upload, body=UploadForm, upload=True, form=IMPORT),
    get(FILE, imports.show, find=queue.get_own),
    post(f"{FILE}/columns", imports.change, find=queue.get_own, body=ColumnsForm, form=FILE),
    post(f"{FILE}/start", imports.start, find=queue.get_own, form=FILE),
    post(f"{FILE}/stop", imports.stop, find=queue.get_own, form=FILE),
    post(f"{FILE}/discard", imports.discard, find=queue.get_own, form=FILE),
    get(f"{FILE}/refused.csv", imports.send_refused, find=queue.get_own, slow=True),
    get("/imports/{id}/undo", partial(imports.preview_undo, IMPORT), find=runs.get_own, figures=True),
    post("/imports/{id}/undo", partial(imports.undo, IMPORT), find=runs.get_own),
)
# fmt: on
