"""Messages about faulty fields: each kind of fault has its text."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, Field

from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.schemas.catalog import TrackIn
from musicsvc.server.schemas.fields import MAX_PAGE, Body, ReleaseDate
from musicsvc.server.schemas.playlists import PlaylistIn
from musicsvc.server.schemas.plays import PlaysIn
from musicsvc.server.schemas.reading import check
from tests.fuzzing.pages import check_page
from tests.support.serving import Client

BEYOND = 2**63


class Inner(Body):
    """An object in the body."""


class Everything(Body):
    """A field for each kind of fault."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=3)] = ""
    longer: Annotated[str, Field(min_length=2)] = ""
    word: Annotated[str, Field(pattern="^[a-z]+$")] = ""
    whole: Annotated[int, Field(strict=True, ge=2, le=9)] = 2
    small: Annotated[int, Field(ge=-BEYOND, le=BEYOND)] = 2
    switch: Annotated[bool, Field(strict=True)] = True
    some: Annotated[list[int], Field(min_length=2, max_length=3, default_factory=list)]
    inner: Inner | None = None
    share: Annotated[float, Field(strict=True, allow_inf_nan=False)] = 0.5
    letter: Literal["a", "b"] = "a"
    day: ReleaseDate = "2026-01-31"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", 7, "Must be a string."),
        ("text", "", "Must not be empty."),
        ("text", None, "This field is required."),
        ("text", "four", "Must have at most 3 characters."),
        ("longer", "1", "Must have at least 2 characters."),
        ("word", "Upper", "Must match the pattern ^[a-z]+$."),
        ("whole", "x", "Must be an integer."),
        ("whole", 1, "Must be at least 2."),
        ("whole", 10, "Must be at most 9."),
        ("small", -BEYOND - 1, "Is out of range."),
        ("small", BEYOND + 1, "Is out of range."),
        ("switch", "x", "Must be true or false."),
        ("some", "x", "Must be a list."),
        ("some", [1], "Must have at least 2 entries."),
        ("some", [1, 2, 3, 4], "Must have at most 3 entries."),
        ("inner", "x", "Must be an object."),
        ("share", "x", "Must be a number."),
        ("share", float("inf"), "Must be a number."),
        ("letter", "c", "Must be one of: 'a' or 'b'."),
        ("day", "2026-1-31", "Must be a date such as 2026-01-31."),
        ("day", "2026-02-29", "There is no such day."),
        ("unknown", 1, "This key is unknown."),
        ("unknown", None, "This key is unknown."),
    ],
)
def test_a_fault_has_its_message(field: str, value: Any, message: str) -> None:
    model, errors = check(Everything, {field: value}, {})
    assert (model, errors) == (None, {field: message})


def test_null_in_a_list_is_no_absent_field() -> None:
    assert check(Everything, {"some": [None, 1]}, {}) == (None, {"some.0": "Must be an integer."})


def test_a_blank_text_is_called_required_only_where_the_field_is() -> None:
    play = {"track_id": 1, "played_at": 1, "listener": " ", "client_id": ""}
    errors = {"plays.0.listener": "Must not be empty.", "plays.0.client_id": "Must not be empty."}
    assert check(PlaysIn, {"plays": [play]}, {"now": 2}) == (None, errors)
    track = {"name": "", "duration": 1, "artists": [1], "genre": "", "tags": [""]}
    errors = {"name": "This field is required.", "genre": "Must not be empty.", "tags.0": "Must not be empty."}
    assert check(TrackIn, track, {}) == (None, errors)


SPELLINGS = {"true": True, "1": True, "false": False, "0": False, "": False}
ANYTHING = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text() | st.lists(st.booleans(), max_size=2)
)


@given(st.sampled_from([*SPELLINGS, " true ", "  "]) | ANYTHING)
def test_a_switch_takes_its_spellings_and_nothing_else(value: Any) -> None:
    expected = SPELLINGS.get(value.strip()) if isinstance(value, str) else value
    expected = False if value is None else expected

    body, faults = check(PlaylistIn, {"name": "Rags", "public": value}, {})

    if isinstance(expected, bool):
        assert body is not None
        assert body.public is expected
    else:
        assert list(faults) == ["public"]


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("page", ["2147483648", "9" * 19, "9" * 5000])
async def test_a_number_of_a_query_beyond_its_bound_is_told_the_bound(client: Client, page: str) -> None:
    answer = await client.get(f"genres?page={page}")
    assert (answer.status, answer.json["errors"]) == (422, {"page": f"Must be at most {MAX_PAGE}."})


# Unknown paths: the insights answer in their own body.

sqlite = pytest.mark.only_on("sqlite")  # no query depends on what these test; the tests of each fault run on both


@sqlite
@pytest.mark.parametrize("path", [INSIGHTS, f"{INSIGHTS}/", f"{INSIGHTS}/nothing", f"{INSIGHTS}/tracks/1/nothing"])
async def test_an_unknown_path_below_the_insights_answers_in_their_body(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status, list(answer.json), answer.json["error"]) == (
        404,
        ["success", "message", "error"],
        "not_found",
    )


@sqlite
@pytest.mark.parametrize("path", [f"{INSIGHTS}x", "/api/v1/producer-intelligence", "/none", "/api", "/API/v1/albums"])
async def test_an_unknown_path_elsewhere_answers_in_the_general_body(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 404
    assert answer.json == {"status": "error", "message": "There is nothing at this path.", "errors": {}}


@sqlite
@pytest.mark.parametrize("path", ["/none", "/api", "/sign-in", "/settings"])
async def test_whatever_a_browser_gets_has_the_headers_of_pages(client: Client, path: str) -> None:
    check_page(await client.get(path, headers={"Accept": "text/html"}))
