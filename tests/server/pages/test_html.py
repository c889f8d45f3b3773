"""Rendering of templates."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from musicsvc.server.pages import html
from musicsvc.server.shapes.pages import View


def test_a_page_without_one_of_its_values_fails_instead_of_showing_nothing() -> None:
    context: dict[str, object] = {"path": "/", "links": [], "pages": [], "caller": None, "notice": None}
    assert b"<h1>" in html.render(View("home.html", {"registration": True, "root": "x"}), context).content
    with pytest.raises(UndefinedError, match="'root' is undefined"):
        html.render(View("home.html", {"registration": True}), context)
