"""Imports of all accounts. `handlers/pages/imports.py` undoes them."""

from musicsvc.server.schemas.pages.admin import OlderQuery
from musicsvc.server.shapes import imports as shapes
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import View
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.undoing import runs
from musicsvc.store.security.sessions import SessionIdentity


def show(query: OlderQuery, caller: SessionIdentity) -> View:
    """Show the imports of all accounts, and the undo that the administrator requested."""
    found = runs.newest(limit=pages.WANTED, before=query.before)
    listed = pages.newest_by_id([shapes.run(row) for row in found], lambda each: each["row"].id)
    undos = [shapes.file(task) for task in queue.list_own(caller.user_id) if task.step == queue.UNDO]
    return View("admin/imports.html", {"imports": listed, "undos": undos}, part="state")
