"""The help of every command: plain words, examples that parse, and `--user` wherever an account is named."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.core import TyperArgument, TyperCommand, TyperGroup

from musicsvc.cli.main import command
from musicsvc.cli.reference import pages
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from tests.cli.test_program import COMMANDS
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

PAGES = dict(pages(command(), "musicsvc"))
EXAMPLES = [
    line.strip() for page in PAGES.values() for line in page.partition("Examples:")[2].splitlines() if line.strip()
]
EMAIL = "ada@example.test"
# Types and ranges as Typer shows them: <int range>, <str>, list[str], [1<=x<=64], {EMAIL}.
PROGRAM_TYPES = re.compile(r"<[a-z ]+>|range|list\[|x[<>]=|[{}]")


@pytest.mark.parametrize("path", PAGES)
def test_help_shows_no_types_of_the_program(path: str) -> None:
    assert not PROGRAM_TYPES.search(PAGES[path])
    for parameter in getattr(COMMANDS.get(path), "params", []):
        is_flag = getattr(parameter, "is_flag", False)
        assert is_flag or getattr(parameter, "metavar", None), f"{path}: {parameter.name} has no metavar"


def test_every_group_has_two_or_three_examples_and_short_texts() -> None:
    groups = [path for path in PAGES if path not in COMMANDS]
    assert len(groups) == 16
    for path in groups:
        listed = PAGES[path].partition("\nCommands:\n")[2]
        assert 2 <= listed.count(f"\n    {path} ") <= 3, path
        assert "..." not in listed, path


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_can_be_parsed(example: str) -> None:
    program, *arguments = shlex.split(example)
    found: object = command()
    context = None
    while isinstance(found, TyperGroup):
        context = context or found.make_context(program, [], resilient_parsing=True)
        name, found, arguments = found.resolve_command(context, arguments)
        program = name or ""
    assert isinstance(found, TyperCommand)
    with suppress(Failure):  # no database has the names in examples
        found.make_context(program, arguments, obj=Session())


@pytest.mark.parametrize("path", COMMANDS)
def test_a_flag_is_off_unless_it_is_given(path: str) -> None:
    context = COMMANDS[path].make_context(path, [], obj=Session(), resilient_parsing=True)
    flags = [part for part in COMMANDS[path].params if getattr(part, "is_flag", False) and not part.secondary_opts]
    assert [part.name for part in flags if context.params.get(part.name or "")] == []


def takes_account(parameters: list[object]) -> bool:
    """Return whether a parameter's value is an account's email."""
    return any(str(getattr(parameter, "metavar", "")).startswith("EMAIL") for parameter in parameters)


def test_user_is_an_option_of_every_command_that_takes_an_account() -> None:
    taking = {path: found.params for path, found in COMMANDS.items() if takes_account(list(found.params))}
    assert len(taking) == 30
    for path, parameters in taking.items():
        assert [part for part in parameters if "--user" in part.opts and not getattr(part, "hidden", False)], path


def test_an_argument_is_required_unless_an_option_replaces_it() -> None:
    for path, found in COMMANDS.items():
        for parameter in found.params:
            if isinstance(parameter, TyperArgument) and str(parameter.metavar).startswith("EMAIL"):
                assert not parameter.required, path


IDS = (1, 2**53 - 1)
USUAL = {"--limit": (1, 1_000_000), "--id": IDS, "--token": IDS, "token_id": IDS, "run": IDS}
RANGES = {  # the others
    "serve": {"--port": (0, 65_535), "--workers": (1, 64), "--wait-for-database": (0, 1e9), "--speed": (0, 1e9)},
    "token create": {"--days": (1, 90)},
    "export report": {"--release-days": (1, 365)},
    "insights release": {"--days": (1, 365)},
    "activity top": {"--limit": (1, 10_000)},
    "cover": {"--template": (1, None), "--size": (16, 3_000)},
}
# The choices that the help of their option does not list.
CHOICES = {("token create", "scope"): {"read", "read-write", "listen"}}


def typed_parameters() -> Iterator[tuple[str, Any]]:
    for path, entry in COMMANDS.items():
        for part in entry.params:
            yield path.removeprefix("musicsvc "), part


def test_numbers_have_these_ranges() -> None:
    found: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    for path, part in typed_parameters():
        declared = part.type_descriptor.parameter_info
        if (declared.min, declared.max) not in {(None, None), USUAL.get(part.opts[0])}:
            found.setdefault(path, {})[part.opts[0]] = (declared.min, declared.max)
    assert found == RANGES


def test_the_help_of_an_option_names_its_choices() -> None:
    listed = 0
    for path, part in typed_parameters():
        if get_origin(part.type_descriptor.annotation) is Literal:
            words = CHOICES.get((path, part.name), set(re.findall(r"[\w./-]*[\w-]", part.help)))
            assert set(get_args(part.type_descriptor.annotation)) <= words, (path, part.name)
            listed += 1
    assert listed == 12


# Wrong usage, which can be judged without the database, ends with exit code 2, also where there is no database.

LONG = "x" * 3_000
WRONG = {  # the command, and the option or argument that the message names
    "token create ada@label.test --name x": "--name",
    "token create ada@label.test --name \u200b\u200b\u200b": "--name",
    "token create ada@label.test --name laptop --scope listen --days 5": "--days",
    "token regenerate 1 --overlap 25h": "--overlap",
    "user create ada": "EMAIL",
    f"user create ada@label.test --display-name {LONG}": "--display-name",
    "user create ada@label.test --display-name \u200b": "--display-name",
    "user edit ada@label.test --email ada": "--email",
    "user edit ada@label.test --display-name ''": "--display-name",
    "access request ada --use-case a --volume b --organization c": "EMAIL",
    f"access request ada@label.test --use-case {LONG} --volume b --organization c": "--use-case",
    "access request ada@label.test --use-case a --volume '' --organization c": "--volume",
    f"access deny ada@label.test --reason {LONG}": "--reason",
    "request POST /api/v1/albums --data {": "--data",
    "seed --scale 0": "--scale",
    "seed --scale 1001": "--scale",
    f"artist edit 1 --name {LONG}": "--name",
    "album edit 1 --upc 036000291453": "--upc",
    "track edit 1 --bpm 5000": "--bpm",
    "track edit 1 --bpm fast": "--bpm",
    "track edit 1 --name ''": "--name",
    "plays list ada@label.test --since nonsense": "--since",
    "plays withdraw ada@label.test --since nonsense": "--since",
    "export tracks --period nonsense": "--period",
    "export tracks --from 2026-02-30 --to 2026-03-01": "--from",
    "export tracks --from 20260201 --to 2026-03-01": "--from",
    "insights show track 0": "ID",
    "fingerprint set 1 bad": "STATUS",
    "import catalog FILE --map x": "--map",
    "import catalog FILE --map x=nonsense": "--map",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:40])
def test_what_can_be_judged_without_a_database_is_wrong_usage(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.delenv("MUSICSVC_DATABASE_URL", raising=False)
    file = tmp_path / "songs.csv"
    file.write_text("track,artist\nAir,Bach\n")

    done = run_in_process([str(file) if each == "FILE" else each for each in shlex.split(line)])

    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for {WRONG[line]}" in done.stderr.replace("'", "")
    assert not (tmp_path / "nothing").exists()


def test_a_password_that_is_too_short_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.delenv("MUSICSVC_DATABASE_URL", raising=False)

    done = run_in_process(["user", "create", "ada@label.test", "--password-stdin"], stdin="short")

    assert (done.returncode, done.stdout) == (2, "")
    assert "The password must have 8 to 128 characters." in done.stderr
