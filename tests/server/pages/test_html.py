"""Rendering of templates."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from musicsvc.server.pages import html
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.shapes.pages import View


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the templates, which pages are rendered from."""
    folder = shutil.copytree(html.FOLDER / "templates", tmp_path / "templates")
    monkeypatch.setattr(html, "FOLDER", tmp_path)
    html._environment.cache_clear()
    yield folder
    html._environment.cache_clear()


def test_a_page_without_one_of_its_values_fails_instead_of_showing_nothing() -> None:
    context: dict[str, object] = {"path": "/", "links": [], "pages": [], "caller": None, "notice": None}
    assert b"<h1>" in html.render(View("home.html", {"registration": True, "root": "x"}), context, "")
    with pytest.raises(UndefinedError, match="'root' is undefined"):
        html.render(View("home.html", {"registration": True}), context, "")


def test_an_upgrade_of_the_package_changes_no_page_of_a_running_server(templates: Path) -> None:
    before, file = html.hidden_field("a", "b"), templates / "hidden.html"
    os.utime(file, (0, 0))
    file.write_text("{% macro hidden(name, value) %}{{ new }}{% endmacro %}", "utf-8")
    assert html.hidden_field("a", "b") == before


def test_no_template_shows_a_value_as_markup() -> None:
    """A value is escaped, and in an attribute it stands in quotes; test_admin.py has names that are scripts."""
    for path in (html.FOLDER / "templates").rglob("*.html"):
        assert re.findall(r"\|\s*safe\b|\bautoescape\b|xmlattr|\s[\w-]+=\{[{%]", path.read_text("utf-8")) == [], path
    assert html._environment("").autoescape is True


def test_pages_name_only_endpoints_that_exist() -> None:
    texts = [path.read_text("utf-8") for path in (html.FOLDER / "templates").rglob("*.html")]
    named = {found for text in texts for found in re.findall(r"\b(GET|POST|PUT|PATCH|DELETE) (/api/[^\s<]*)", text)}
    known = {(route.method, route.path) for route in ROUTES}
    assert ("POST", "/api/v1/plays") in named
    assert named <= known
