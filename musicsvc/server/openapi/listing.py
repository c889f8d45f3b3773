"""Markdown list of all endpoints: `python -m musicsvc.server.openapi.listing > docs/endpoints.md`; llms.txt."""

import sys
from collections.abc import Iterable, Iterator

from musicsvc.server.openapi.operations import noun, summary
from musicsvc.server.openapi.tools import tools
from musicsvc.server.routes.route import TOOLS, V1, Access, Family, Route
from musicsvc.server.routes.table import ROUTES

HEAD = """# Endpoints

Generated from the table of endpoints by `python -m musicsvc.server.openapi.listing > docs/endpoints.md`; a test
compares the two. Bodies, responses and errors are in the OpenAPI document: `/api/v1/openapi.json`, readable at `/docs`.

Callers: *all*, without a token; *public*, without a token the public fields only; *token*, an account with API access;
*account*, a token whose account may have none; of pages, which are for browsers and no part of the API, *signed in* and
*administrators*, by session.
The status is that of success; pages redirect (303) after most forms. A + marks endpoints beyond the original
specification. *Limit* is the rate limit of the endpoint beside that of its caller ([limits.md](limits.md)).
Players use other endpoints ([players.md](players.md)), and so do assistants ([assistants.md](assistants.md)).
"""
PEOPLE = {Access.SESSION: "signed in", Access.DEVELOPER: "API access", Access.ADMIN: "administrators"}
CALLERS = {Access.OPEN: "all", Access.PUBLIC: "public", Access.TOKEN: "token", Access.ACCOUNT: "account"} | PEOPLE


def markdown() -> str:
    sections: dict[str, list[Route]] = {}
    for route in ROUTES:
        if route.family is Family.PAGE:
            sections.setdefault("pages", []).append(route)
        elif not route.docs.undocumented:
            sections.setdefault(noun(route), []).append(route)
    return "\n".join([HEAD, *(_section(name, routes) for name, routes in sections.items())])


def _section(name: str, routes: Iterable[Route]) -> str:
    rows = "".join(f"| {' | '.join(_cells(route))} |\n" for route in routes)
    return f"## {name}\n\n| method | path | callers | limit | status | |\n|---|---|---|---|---|---|\n{rows}"


def _cells(route: Route) -> Iterator[str]:
    yield route.method
    yield f"`{route.path}`{' +' if route.docs.extension else ''}"
    yield CALLERS[route.access]
    yield "" if route.limit is None else f"`{route.limit.value}`"
    yield "" if route.family is Family.PAGE else str(route.status)
    yield summary(route)


def llms(root: str) -> bytes:
    """Return the list of documents, tools and endpoints for assistants (llms.txt). `root`: the URL of the service."""
    lines = [
        "# musicsvc",
        "\n> A music catalog, playlist and creator-analytics API.",
        "\n## Documents\n",
        f"- [OpenAPI document]({root}{V1}/openapi.json): every endpoint, its parameters and responses",
        f"- [Documentation]({root}/docs): the same as a page",
        f"\n## Tools\n\nCalled by the Model Context Protocol with a token: POST {root}{TOOLS}\n",
        *(f"- {name}: {each['description']}" for name, each in tools().items()),
        "\n## Endpoints\n",
        *(f"- {each.method} {root}{each.path}: {summary(each)}" for each in ROUTES if not each.docs.undocumented),
    ]
    return "\n".join([*lines, ""]).encode()


if __name__ == "__main__":
    sys.stdout.write(markdown())
