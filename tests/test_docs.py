"""The links, files, settings and commands of every page of docs/ exist."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.core import TyperGroup

from musicsvc.cli.main import command
from musicsvc.config import Settings, flat
from musicsvc.errors import Failure
from musicsvc.store.security.security_events import Kind

OPERATOR = re.compile(r"\d?[<>|&;]")  # of the shell
ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")])
PROSE = [page for page in PAGES if page.name != "CHANGELOG.md"]  # it also names things that were removed
SECTIONS = {name for name, field in Settings.model_fields.items() if hasattr(field.annotation, "model_fields")}
DATA_FILES = {"db", "toml", "md", "py", "json"}  # `activity.db` is a file, `activity.keep_days` a setting
# Defaults that the table of settings states in words.
WORDED = {
    "data_dir": "depends on the platform",
    "database_direct_url": "`database_url`",
    "database_url": "`sqlite:///` + `musicsvc.db` in the data folder",
    "database_read_url": "none",
    "server.base_path": "none",
    "server.trusted_proxies": "loopback",
    "activity.file": "`activity.db` beside the database",
    "backups.folder": "`backups` beside the database",
}
NOT_SETTINGS = {*get_args(Kind), "plays.total", "plays.period"}  # kinds of events, fields of answers


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _text(page: Path) -> str:
    return page.read_text("utf-8")


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub creates them."""
    headings = re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in re.findall(r"(?:\]\(|src=\")(?!https?:)([^)\s\"]+)", _text(page)):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_each_decision_has_its_date_and_its_status() -> None:
    sections = re.split(r"^### ", _text(ROOT / "docs" / "decisions.md"), flags=re.MULTILINE)[1:]
    stamp = re.compile(r"\n\*\d{4}-\d\d-\d\d, in force(; revised \d{4}-\d\d-\d\d)?\*\n\n")
    assert [section.splitlines()[0] for section in sections if not stamp.search(section)] == []


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_files_of_the_repository_exist(page: Path) -> None:
    folders = "(?:tests|benchmarks|musicsvc|docs|fixtures)"
    text = re.sub(r"```diff\n.*?```", "", _text(page), flags=re.DOTALL)  # they add files
    for file in re.findall(rf"(?<!/etc/)\b{folders}/[\w/.-]+\.(?:py|md|toml)\b", text):
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_settings_exist(page: Path) -> None:
    for section, name in re.findall(r"`([a-z]+)\.([a-z_]+)`", _text(page)):
        if section in SECTIONS and name not in DATA_FILES and f"{section}.{name}" not in NOT_SETTINGS:
            assert name in _settings(section), f"{section}.{name}"


def test_every_setting_is_in_the_table_with_its_default() -> None:
    table = _text(ROOT / "docs" / "configure.md").partition("\n## Settings\n")[2].partition("\n## ")[0]
    documented: dict[str, str] = {}
    for cell, defaults in re.findall(r"^\| (`.*?) \| (.*?) \| ", table, re.MULTILINE):
        names = re.findall(r"`([a-z_.]+)`", cell)
        documented |= zip(names, defaults.split(", ") if "," in defaults else [defaults] * len(names), strict=True)
    values = {name: _documented(value) for name, value in flat(Settings.model_construct()).items()}
    assert documented == values | WORDED


def _documented(value: object) -> str:
    """Return a default as the table writes it."""
    match value:
        case None | []:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
        case float():
            return f"`{value:g}`"
    return f"`{value}`"


@cache
def _settings(section: str) -> set[str]:
    fields = getattr(Settings.model_fields[section].annotation, "model_fields", {})
    return {field.alias or name for name, field in fields.items()}


def _shell_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command in the page's shell blocks, with continued lines joined."""
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", _text(page), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words:
                yield words


_program = cache(command)


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_commands_of_shell_blocks_parse(page: Path) -> None:
    for words in _shell_lines(page):
        if words[0] == "musicsvc":
            _parse(_program(), list(takewhile(lambda word: not OPERATOR.match(word), words[1:])))
        elif words[0] in {"pytest", "python"} and words[1].endswith(".py"):
            scripts = [word for word in words[1:] if word.endswith(".py")]
            assert all((ROOT / script).exists() for script in scripts), words
            source = "".join(_text(ROOT / script) for script in [*scripts, "tests/conftest.py"])
            assert all(word in source for word in words if word.startswith("--")), words


def _parse(group: TyperGroup, words: list[str], parent: Any = None) -> None:
    """Parse the words as the program would, without running the command; raise UsageError if it would refuse them."""
    # Commands keep the names of their help option from their first context, so it needs the settings of its parents.
    context = group.make_context("", [], parent, resilient_parsing=True)
    name, below, rest = group.resolve_command(context, words)
    if isinstance(below, TyperGroup):
        _parse(below, [*rest], context)
    elif below is not None:
        with suppress(Failure):  # no database has the names of the examples
            below.make_context(name, rest, context).close()


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_commands_in_the_text_exist(page: Path) -> None:
    for span in re.findall(r"`musicsvc ((?:[a-z][a-z-]* ?)+)", _text(page)):
        group: object = _program()
        for word in span.split():
            if not isinstance(group, TyperGroup):
                break
            if word == "listens":  # `musicsvc listens on …` is a message
                break
            assert word in group.commands, span
            group = group.commands[word]


def test_the_index_links_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", _text(index))}

    assert [str(page) for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in {index, *linked}] == []
