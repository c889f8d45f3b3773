"""A demo that the tests share. Each test leaves it without rules."""

from collections.abc import Iterator

import pytest

from tests.support.demo import Demo, running_demo


@pytest.fixture(scope="session")
def shared_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


@pytest.fixture
def demo(shared_demo: Demo) -> Iterator[Demo]:
    yield shared_demo
    assert shared_demo.ask("DELETE", "/demo/faults").status == 200


@pytest.fixture
def own_demo(demo: Demo) -> Iterator[Demo]:
    """Return the demo, which the test changes and which is reset afterwards."""
    yield demo
    assert demo.post("/demo/reset").status == 200
