"""The page of the API documentation in Chromium."""

from collections.abc import Callable
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.engine.store import Store
from tests.browser.visit import Visit
from tests.support.serving import person

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


STORED = "[Object.values(sessionStorage), Object.values(localStorage), document.cookie]"


def short(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with one path and no schemas, which the page draws in a part of the time."""
    operation = {**document["paths"]["/api/v1/users/me"]["get"], "responses": {"200": {"description": "The account."}}}
    components = {"securitySchemes": document["components"]["securitySchemes"]}
    return {**document, "paths": {"/api/v1/users/me": {"get": operation}}, "components": components}


def test_a_pasted_token_is_kept_for_its_tab_until_the_user_logs_out(
    visit: Callable[..., Visit], store: Store, clock: MovableClock
) -> None:
    page, token = visit().page, person(store, clock, "ann@label.test")[1]
    dialog, operation = page.locator(".dialog-ux"), page.locator("#operations-users-users_me")
    page.route("**/openapi.json", lambda route: route.fulfill(json=short(route.fetch().json())))
    page.goto("/docs")
    page.locator(".auth-wrapper").get_by_role("button", name="Authorize").click()
    dialog.locator("input").fill(token)
    dialog.locator("button[type=submit]").click()
    assert page.evaluate(STORED) == [[token], [], ""]

    page.reload()
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    assert operation.locator(".live-responses-table tbody .response-col_status").inner_text().strip() == "200"
    other = page.context.new_page()
    other.goto("/docs/page.css")  # of the same origin
    assert other.evaluate(STORED) == [[], [], ""]

    page.locator(".auth-wrapper").get_by_role("button", name="Authorize").click()
    dialog.get_by_text("Logout").click()
    assert page.evaluate(STORED) == [[], [], ""]


def test_the_documentation_leads_to_the_page_that_creates_tokens(visit: Callable[..., Visit]) -> None:
    page = visit().page
    page.goto("/docs")
    page.get_by_role("banner").get_by_role("link", name="Developers").click()
    page.wait_for_url("**/sign-in?next=/settings/developers")
