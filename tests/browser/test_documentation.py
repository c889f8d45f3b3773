"""The page of the API documentation in Chromium."""

from collections.abc import Callable

import pytest

from tests.browser.visit import Visit

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


def test_the_documentation_loads_nothing_from_elsewhere(visit: Callable[..., Visit]) -> None:
    window = visit()
    window.page.goto("/docs")
    window.page.get_by_text("/api/v1/albums").first.wait_for()
    assert (window.errors, window.foreign) == ([], [])
