"""Pages to create, edit, merge and delete artists, albums and tracks."""

from collections.abc import Callable, Mapping
from typing import Any

from musicsvc.server.handlers.pages import editing, merging
from musicsvc.server.routes.pages import page
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.schemas.pages.editing import FieldsForm, MergeForm, MergeQuery, NewQuery, TwinsQuery
from musicsvc.store.editing import edits
from musicsvc.store.editing.merging import Noun

SESSION = Access.SESSION
FIND: Mapping[Noun, Callable[..., Any]] = {
    "artist": edits.find_artist,
    "album": edits.find_album,
    "track": edits.find_track,
}


def _pages(noun: Noun, find: Callable[..., Any]) -> tuple[Route, ...]:
    new, merge, row = f"/insights/{noun}/new", f"/insights/{noun}/merge", f"/insights/{noun}/{{id}}"
    edit, delete = f"{row}/edit", f"{row}/delete"
    return (
        page("GET", new, editing.show_new(noun), SESSION, query=NewQuery),
        page("POST", new, editing.create(noun), SESSION, query=NewQuery, body=FieldsForm, form=new),
        page("GET", merge, merging.show(noun), SESSION, query=MergeQuery, form=merge),
        page("POST", merge, merging.merge(noun), SESSION, body=MergeForm),
        page("GET", edit, editing.show(noun), SESSION, find=find),
        page("POST", edit, editing.save(noun), SESSION, find=find, body=FieldsForm, form=edit),
        page("GET", delete, editing.show_deletion(noun), SESSION, find=find),
        page("POST", delete, editing.delete, SESSION, find=find, form=delete),
    )


ROUTES: tuple[Route, ...] = (
    page("GET", merging.TWINS, merging.show_twins, SESSION, query=TwinsQuery, figures=True),
    *(route for noun, find in FIND.items() for route in _pages(noun, find)),
)
