"""Pages to find twins among artists, albums and tracks, to merge one into another, and to split an artist."""

from functools import partial

from musicsvc.errors import Conflict, Failure, Invalid
from musicsvc.server.responses.answer_cache import FragmentReader
from musicsvc.server.schemas import editing
from musicsvc.server.schemas.pages.editing import MergeForm, MergeQuery, SplitForm, SplitQuery, TwinsQuery, read_parts
from musicsvc.server.shapes import editing as shapes
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.catalog import artists, names
from musicsvc.store.editing import merging, row_texts, splitting, twins
from musicsvc.store.editing.merging import Noun
from musicsvc.store.engine.pagination import Page
from musicsvc.store.importing.cells import lists
from musicsvc.store.security.security_events import Actor, Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated

TWINS = "/insights/duplicates"


def show_twins(query: TwinsQuery, caller: SessionIdentity, kept: FragmentReader | None) -> View:
    """List the twins among what the account manages. They are found again only after the catalog has changed."""
    find = partial(twins.find, query.kind, caller.user_id)
    pairs = find() if kept is None else kept.read_one((twins.find, query.kind), caller.user_id, find)
    found = twins.list(query.kind, pairs, Page(query.page))
    return View("insights/duplicates.html", {"noun": query.kind, "found": found, "pairs": found.rows})


def show(noun: Noun, query: MergeQuery, caller: SessionIdentity) -> View:
    """Let the user choose two rows and, once they are chosen, show what a merge would do.

    Raises Invalid for a merge into itself.
    """
    known = names.managed(noun, caller.user_id) if noun != "track" else []
    values = {"noun": noun, "query": query, "known": known, "preview": None}
    if query.merge is None or query.into is None:
        return View("insights/merge.html", values)
    source, target = (_find(noun, name, text, caller) for name, text in (("merge", query.merge), ("into", query.into)))
    try:
        preview = merging.preview(noun, source, target, caller=caller)
    except Conflict as failure:  # into itself
        raise Invalid({"into": failure.message}) from None
    both = row_texts.load(noun, source), row_texts.load(noun, target)
    rows = shapes.compared(noun, *both, preview.taken)
    return View("insights/merge.html", values | {"preview": preview, "rows": rows})


def _find(noun: Noun, name: str, text: str, caller: SessionIdentity) -> int:
    try:
        found = names.find_id(noun, text, manager_id=caller.user_id)
        row_texts.load(noun, found)  # digits alone need not be those of a row
    except Failure as failure:
        raise Invalid({name: failure.message}) from None
    return found


def merge(noun: Noun, body: MergeForm, caller: SessionIdentity, now: int) -> Redirect:
    """Merge one row into another."""
    done = merging.merge(noun, body.merge, body.into, now=now, caller=caller, actor=_actor(caller))
    return Redirect(f"{TWINS}?kind={noun}", f"{isolated(done.from_name)} is merged into {isolated(done.into_name)}.")


def show_split(query: SplitQuery, caller: SessionIdentity, now: int) -> View:
    """Let the user choose an artist and its parts and, once they are chosen, show what a split would do.

    Raises Invalid for parts that are none, and for a track that would have too many artists.
    """
    artist = None if not query.artist else _find("artist", "artist", query.artist, caller)
    values = {"query": query, "known": names.managed("artist", caller.user_id), "preview": None, "proposed": ""}
    if artist is None or query.into is None:
        return View("insights/split.html", values | {"proposed": "" if artist is None else _proposed(artist)})
    try:
        preview = splitting.preview(artist, _parts(query.into, now), caller=caller)
    except Conflict as failure:
        raise Invalid({"into": failure.message}) from None
    return View("insights/split.html", values | {"preview": preview})


def _proposed(artist: int) -> str:
    """Return the names in that of an artist, one in a line, if there are several. Raises NotFound."""
    found = lists.divide(artists.get(artist).name, lists.MARKS)
    return "\n".join(dict.fromkeys(found)) if len(found) > 1 else ""


def _parts(text: str, now: int) -> list[str]:
    parts = read_parts(text)
    if fault := editing.fault_of_parts(parts, now=now):
        raise Invalid({"into": fault})
    return parts


def split(body: SplitForm, caller: SessionIdentity, now: int) -> View | Redirect:
    """Split an artist into others, or show what a split would do."""
    if body.preview:
        return show_split(SplitQuery(artist=body.artist, into=body.into), caller, now)
    artist, parts = _find("artist", "artist", body.artist, caller), _parts(body.into, now)
    done = splitting.split(artist, parts, now=now, caller=caller, actor=_actor(caller))
    made = ", ".join(isolated(part.name) for part in done.into)
    return Redirect("/insights/artists", f"{isolated(done.name)} is split into {made}.")


def _actor(caller: SessionIdentity) -> Actor:
    return Administrator(caller.user_id) if caller.admin else "page"
