"""Read secrets from a prompt or from stdin. Command-line arguments would be visible to other users."""

import sys

import typer

from musicsvc.errors import Failure


def read_stdin(noun: str) -> str:
    """Read all of stdin as UTF-8, without the last line break. `noun` names the secret in error messages."""
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise Failure(f"The {noun} on stdin is not valid UTF-8. Encode it in UTF-8.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Failure(f"stdin is empty. Pass the {noun} on stdin.")
    return text


def prompt_once(question: str) -> str:
    """Prompt for a secret without showing the input."""
    answer: str = typer.prompt(question, hide_input=True, err=True)
    return answer


def prompt_twice(question: str, option: str) -> str:
    """Prompt for a secret until two inputs are equal. Without a terminal, raises Failure, which names `option`."""
    if not sys.stdin.isatty():
        raise Failure(f"There is no terminal for the prompt. Use {option}.")
    answer: str = typer.prompt(question, hide_input=True, confirmation_prompt=True, err=True)
    return answer
