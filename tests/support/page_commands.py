"""The commands of pages: a test runs those below each heading of a page for operators, or docs/install.md lists them.

The pages for developers of clients show the output of their commands, too.
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
LIST = "What could not be run"


def text(page: str, heading: str = "") -> str:
    """Return the part of a page below a heading, up to the next one. Default: what stands above the first `##`."""
    lines = (DOCS / page).read_text("utf-8").splitlines(keepends=True)
    parts: dict[str, str] = {}
    name, fenced = "", False
    for line in lines:
        fenced ^= line.strip().startswith("```")
        if not fenced and (found := re.fullmatch(r"##+ (.*)\n", line)):
            name = found[1]
        parts[name] = parts.get(name, "") + line
    return parts[heading]


def headings(page: str) -> list[str]:
    """Return the headings of a page that have commands below them, `""` for what stands above the first."""
    content = re.sub(r"```.*?```", "", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    return [name for name in ("", *re.findall(r"^##+ (.*)$", content, re.MULTILINE)) if blocks(page, name)]


def blocks(page: str, heading: str = "", language: str = "sh") -> list[str]:
    """Return the blocks of one language below a heading."""
    found = re.findall(rf"^( *)```{language}\n(.*?)```", text(page, heading), re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def examples(page: str, heading: str = "") -> list[tuple[str, str]]:
    """Return each block of commands below a heading, and the output that the page shows right after it, if any."""
    pattern = r"```sh\n(.*?)```(?:\n\n```(?:http|json|text)\n(.*?)```)?"
    return re.findall(pattern, text(page, heading), re.DOTALL)


def missing(shown: str, printed: str) -> list[str]:
    """Return the shown lines that were not printed; `…` stands for any characters of a line."""
    patterns = {line: ".*".join(map(re.escape, line.split("…"))) for line in shown.splitlines()}
    return [line for line, pattern in patterns.items() if not re.search(pattern, printed)]


def commands(page: str, heading: str = "") -> list[str]:
    """Return the commands below a heading that a test can run."""
    return [line for line in _all(page, heading) if line not in untested()]


def listed_commands(page: str) -> set[str]:
    """Return the commands of a page that the list names."""
    return {line for heading in headings(page) for line in _all(page, heading)} & untested().keys()


def untested() -> dict[str, str]:
    """Return the commands that no test runs, with the reason for each."""
    return dict(re.findall(r"^\| `(.*?)` \| (.*?) \|$", text("install.md", LIST), re.MULTILINE))


def _all(page: str, heading: str) -> list[str]:
    lines = "".join(blocks(page, heading)).replace("\\\n", " ").splitlines()
    return [command for line in lines if (command := re.sub(r"(^|\s+)# .*", "", line).strip())]
