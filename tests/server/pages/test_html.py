"""Rendering of templates."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.errors import Malformed
from musicsvc.server.handlers.pages.developers import moment_from
from musicsvc.server.handlers.pages.settings import describe
from musicsvc.server.pages import html
from musicsvc.server.schemas.pages.accounts import PasswordForm
from musicsvc.server.schemas.pages.admin import ReasonForm, WithdrawalForm
from musicsvc.server.schemas.pages.form import MOST_FIELDS, parse_form
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
    assert "<b>" not in html.hidden_field("<b>", "<b>")


def test_pages_name_no_endpoints() -> None:
    for path in (html.FOLDER / "templates").rglob("*.html"):
        assert not re.findall(r"\b(?:GET|POST|PUT|PATCH|DELETE) /", path.read_text("utf-8")), path


# Parsing of forms.


def test_the_fields_of_a_form_are_kept_as_they_were_typed() -> None:
    parsed = parse_form(ReasonForm, b"reason=+two%0D%0Alines&other=", {})
    assert (parsed.sent, parsed.errors) == ({"reason": " two\nlines", "other": ""}, {})


def test_only_a_field_that_is_optional_may_be_blank() -> None:
    typed = "track=+%C2%A0&since=+&password=++"
    parsed = parse_form(WithdrawalForm, typed.encode(), {})
    assert (parsed.sent["track"], parsed.model, parsed.errors) == (" \u00a0", WithdrawalForm(), {})
    blank = parse_form(PasswordForm, typed.encode(), {})
    assert blank.model == PasswordForm(password="  ")  # which somebody may have
    assert parse_form(ReasonForm, b"reason=+", {}).errors == {"reason": "This field is required."}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"reason=a&reason=a", "The form repeats a field."),
        (b"reason", "The form is not valid."),
        (b"reason=%ff", "The form is not valid."),
        (b"reason=\xff", "not valid"),
        (b"&".join(b"f%d=" % each for each in range(MOST_FIELDS + 1)), "The form is not valid."),
    ],
)
def test_what_is_no_form_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        parse_form(ReasonForm, raw, {})


# Names of browsers in the list of sessions.

KIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS, MAC = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
ANDROID, IPHONE = "Mozilla/5.0 (Linux; Android 14; SM-S911B)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X)"
IPAD = "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X)"


@pytest.mark.parametrize(
    ("agent", "described"),
    [
        (f"{WINDOWS} {KIT} Chrome/125.0.0.0 Safari/537.36 Edg/125.0.0.0", "Edge on Windows"),
        (f"{ANDROID} {KIT} Chrome/125.0.0.0 Mobile Safari/537.36 EdgA/124.0.0.0", "Edge on Android"),
        (f"{IPHONE} {KIT} Version/17.0 EdgiOS/124.0.0.0 Mobile/15E148 Safari/604.1", "Edge on iOS"),
        (f"{WINDOWS} {KIT} Chrome/124.0.0.0 Safari/537.36 OPR/110.0.0.0", "Opera on Windows"),
        ("Opera/9.80 (Macintosh; Intel Mac OS X 10.14.1) Presto/2.12.388", "Opera on macOS"),
        (f"{ANDROID} {KIT} SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36", "Samsung Internet on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0", "Firefox on Linux"),
        ("Mozilla/5.0 (X11; Ubuntu; rv:126.0) Gecko/20100101 Firefox/126.0", "Firefox on Linux"),
        (f"{IPHONE} {KIT} FxiOS/126.0 Mobile/15E148 Safari/605.1.15", "Firefox on iOS"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {KIT} Chrome/125.0.0.0 Safari/537.36", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (X11; Linux x86_64) {KIT} Chromium/125.0.0.0 Safari/537.36", "Chrome on Linux"),
        (f"{IPAD} {KIT} CriOS/125.0.6422.80 Mobile/15E148 Safari/604.1", "Chrome on iOS"),
        (f"{MAC} {KIT} Version/17.4.1 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (Linux) Mobile", "A browser on Linux"),
        ("curl/8.5.0", "curl"),
        ("", "An unknown browser"),
    ],
)
def test_a_browser_is_described_with_its_system(agent: str, described: str) -> None:
    assert describe(agent) == described


# Times relative to now, in the list of tokens.


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (2 * DAY, "in 2 days"),
        (90 * DAY - SECOND, "in 90 days"),
        (89 * DAY + 11 * 60 * MINUTE, "in 89 days"),
        (2 * DAY - 1, "in 48 hours"),
        (120 * MINUTE, "in 2 hours"),
        (120 * MINUTE - 1, "in 120 minutes"),
        (MINUTE, "in 1 minute"),
        (SECOND, "in 0 minutes"),
        (0, "0 minutes ago"),
        (-59 * MINUTE, "59 minutes ago"),
        (-12 * DAY, "12 days ago"),
    ],
)
def test_a_time_is_in_the_largest_unit_of_which_there_are_two(left: int, shown: str) -> None:
    assert moment_from(left) == shown
