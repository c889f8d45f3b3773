"""Secrets come from a prompt or from stdin, never from an argument."""

import sys

import typer

from musicsvc.errors import Failure


def read_stdin(noun: str) -> str:
    """All of stdin in UTF-8 without its last line end; the noun names it in messages."""
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise Failure(f"The {noun} on stdin is not valid UTF-8.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Failure(f"There is no {noun} on stdin.")
    return text


def prompt_once(question: str) -> str:
    """The answer, typed unseen at the terminal."""
    answer: str = typer.prompt(question, hide_input=True, err=True)
    return answer


def prompt_twice(question: str, option: str) -> str:
    """The answer, typed twice unseen; without a terminal a Failure that names the option to use instead."""
    if not sys.stdin.isatty():
        raise Failure(f"There is no terminal to ask at. Use {option}.")
    answer: str = typer.prompt(question, hide_input=True, confirmation_prompt=True, err=True)
    return answer
