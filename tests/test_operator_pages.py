"""Every command of the pages for operators runs in a test, or is in the list of docs/install.md with the reason."""

from pathlib import Path

import pytest

from tests.support import page_commands

TESTS = Path(__file__).parent
PAGES = ["install.md", "configure.md", "proxy.md", "upgrade.md", "move.md", "size.md", "recover.md"]
SECTIONS = [(page, heading) for page in PAGES for heading in page_commands.headings(page)]


def _sources() -> list[str]:
    files = [file for file in TESTS.rglob("test_*.py") if file != Path(__file__)]
    return [text for file in files if "page_commands" in (text := file.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "heading"), SECTIONS)
def test_a_test_runs_the_commands_below_each_heading(page: str, heading: str) -> None:
    if page_commands.commands(page, heading):
        users = [text for text in _sources() if f'"{page}"' in text]
        assert [text for text in users if not heading or f'"{heading}"' in text]


def test_the_list_of_what_could_not_be_run_has_only_commands_of_the_pages() -> None:
    listed = {command for page in PAGES for command in page_commands.listed_commands(page)}

    assert listed == page_commands.untested().keys()
    assert all(page_commands.untested().values())
