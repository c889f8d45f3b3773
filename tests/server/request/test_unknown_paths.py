"""Unknown paths: the insights answer in their own body."""

import pytest

from musicsvc.server.routes.route import INSIGHTS
from tests.fuzzing.pages import check_page
from tests.support.serving import Client

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
