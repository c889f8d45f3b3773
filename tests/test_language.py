"""The check of language finds refused phrases and docstrings, and nothing else."""

from pathlib import Path

import pytest

from checks import language

PYTHON = Path("musicsvc/example.py")
PAGE = Path("docs/example.md")


def lines(path: Path, text: str) -> list[int]:
    return [hit.line for hit in language.check(path, text)]


@pytest.mark.parametrize("phrase", language.PHRASES)
def test_a_refused_phrase_is_found_in_any_case_and_across_lines(phrase: str) -> None:
    text = "The first line.\n" + "\n".join(f"It {phrase} it.".split(" "))

    assert len(lines(PAGE, text)) == 1
    assert lines(PAGE, f"One.\n\nTwo {phrase.upper()} three.") == [3]
    assert lines(PAGE, f"x{phrase}x") == []


@pytest.mark.parametrize("opening", ["What", "Who", "Whose", "Which", "How", "That"])
def test_a_docstring_begins_with_a_verb_or_a_noun(opening: str) -> None:
    function = f'def f() -> None:\n    """{opening} is it."""\n'

    refused = [] if opening == "Whose" else [1]
    assert lines(PYTHON, f'"""{opening} is it."""\n') == refused
    assert lines(PYTHON, function) == [line + 1 for line in refused]
    assert lines(PYTHON, "class C:\n" + "".join(f"    {line}\n" for line in function.splitlines())) == [
        line + 2 for line in refused
    ]
    assert lines(PAGE, f"{opening} is it.") == []


def test_a_comment_may_begin_with_any_word() -> None:
    assert lines(PYTHON, "# What follows is fine.\nvalue = 1\n") == []


@pytest.mark.parametrize("says", [True, False])
def test_a_public_function_that_raises_says_so(says: bool) -> None:
    docstring = '"""Return one. Raises `Failure` if there is none."""' if says else '"""Return one."""'
    text = f"class C:\n    def f(self) -> int:\n        {docstring}\n        if self:\n            raise Failure()\n"

    assert lines(PYTHON, text) == ([] if says else [2])
    assert lines(Path("musicsvc/cli/example.py"), text) == []
    assert lines(PYTHON, text.replace("def f", "def _f")) == []


@pytest.mark.parametrize(
    "text",
    [
        "def f() -> None:\n    def g() -> None:\n        raise Failure()\n    g()\n",
        "def f() -> None:\n    try:\n        g()\n    except Failure:\n        raise\n",
        "class C:\n    def f(self) -> None:\n        raise NotImplementedError\n",
    ],
)
def test_errors_of_inner_functions_and_of_interfaces_need_no_words(text: str) -> None:
    assert lines(PYTHON, text) == []
