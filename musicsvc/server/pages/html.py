"""Renders the templates of pages, and maps static files to their URLs."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension

from musicsvc.clock import isoformat, to_datetime
from musicsvc.reports.charts import dates
from musicsvc.server.shapes.envelope import Representation, represent
from musicsvc.server.shapes.pages import FormState, View
from musicsvc.store.insights.figures import noun
from musicsvc.wording import cut, every, quantity

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
HTML_TYPE = "text/html; charset=utf-8"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".html": "text/html"}
POSTED = re.compile(r'<form [^>]*method="post"[^>]*>')  # in a template
DIGEST_LENGTH = 12  # characters of the hash in a file's URL, so that browsers may keep the file for ever


class FormTokens(Extension):
    """Makes the token of the session the first field of every form that is posted."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja's
        return POSTED.sub(r"\g<0>{{ form_token() }}", source)


def render(view: View, context: Mapping[str, Any], base_path: str, *, part: bool = False) -> bytes:
    """Render the template of the view, or with `part` only its block for htmx. Return the page in UTF-8.

    `context`: variables of all templates. `base_path`: in templates `base`, with which every link begins. Errors of
    `form` that the page shows beside no field, such as those of a hidden one, are shown above its content.
    """
    template = _environment(base_path).get_template(view.template)
    values = {"unplaced": {}, **context, **view.values}
    if part and view.part is not None:
        block = template.blocks[view.part]
        return "".join(block(template.new_context(values))).encode()
    page, form = template.render(values), values.get("form", FormState())
    unplaced = {name: text for name, text in form.errors.items() if f'id="{name}-error"' not in page}
    if unplaced:
        placed = {name: text for name, text in form.errors.items() if name not in unplaced}
        page = template.render(values | {"unplaced": unplaced, "form": replace(form, errors=placed)})
    return page.encode()


def plain(title: str, message: str) -> bytes:
    """Return a page with only these texts. It costs next to nothing."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)} · musicsvc</title>'
    return f"{head}<h1>{escape(title)}</h1><p>{escape(message)}</p></html>".encode()


def hidden_field(name: str, value: str) -> Any:
    """Return a hidden field of a form, as markup."""
    macros: Any = _environment("").get_template("hidden.html").module
    return macros.hidden(name, value)


@lru_cache(maxsize=1)
def static_files() -> dict[str, Path]:
    """Map the name of each static file in URLs, such as `site-0123456789ab.css`, to its path. Reads all files."""
    paths = [path for path in STATIC.rglob("*") if path.suffix in KINDS]
    return {f"{path.stem}-{_digest(path)}{path.suffix}": path for path in paths}


@lru_cache(maxsize=64)
def represent_file(path: Path) -> Representation:
    """Return a file for browsers with its gzip form. The result is cached."""
    return represent(path.read_bytes(), f"{KINDS[path.suffix]}; charset=utf-8")


@lru_cache(maxsize=1)
def _paths() -> dict[str, str]:
    return {path.name: f"/static/{name}" for name, path in static_files().items()}


def static_path(name: str) -> str:
    """Return the path of the static file with this name, without the base path."""
    return _paths()[name]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGEST_LENGTH]


@lru_cache(maxsize=2)
def _environment(base_path: str) -> Environment:
    environment = Environment(
        extensions=[FormTokens],
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["base"] = base_path
    environment.globals["static"] = lambda name: base_path + static_path(name)
    environment.filters["moment"] = _moment
    environment.filters["isoformat"] = isoformat
    environment.filters["day"] = lambda instant: f"{to_datetime(instant):%-d %b %Y}"
    environment.filters["cut"] = cut
    environment.filters["noun"] = noun
    environment.filters["quantity"] = quantity
    environment.filters["every"] = every
    environment.filters["number"] = lambda value: f"{value:,}"
    environment.filters["date"] = lambda text: f"{date.fromisoformat(text):%-d %b %Y}"
    environment.filters["days"] = lambda of: dates.words(*(date.fromisoformat(of[name]) for name in ("start", "end")))
    environment.filters["time"] = lambda text: f"{datetime.fromisoformat(text):%-d %b %Y, %H:%M:%S} UTC"
    environment.filters["percent"] = _percent
    return environment


def _percent(value: float | None) -> str:
    """Format growth in percent, such as `+12.5 %`. Returns a dash for None."""
    if value is None:
        return "\u2013"
    sign = "+" if value > 0 else "\u2212" if value < 0 else ""
    return f"{sign}{abs(value):,.1f}\u00a0%"


def _moment(instant: int) -> str:
    """Format an instant as text, such as `22 Nov 2026, 15:04 UTC`."""
    return f"{to_datetime(instant):%-d %b %Y, %H:%M} UTC"
