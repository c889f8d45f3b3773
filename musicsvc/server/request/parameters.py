"""Parse headers with parameters, such as `Content-Type: text/csv; charset="utf-8"` (RFC 9110, section 5.6.6)."""

import re
from collections.abc import Iterable

# A parameter and the `;` after it. It always matches, and gives nothing back: each character is looked at once.
PARAMETER = re.compile(
    r'\s*+([^\s;="]*+)(?:\s*+=\s*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)("?+)|([^\s;"]*+)))?+[^;]*+;?+', re.DOTALL
)
# A preference, the parameters after it, and the `,` after them, likewise.
PREFERENCE = re.compile(
    r'\s*+([^\s;,="]*+)(?:\s*+=\s*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|([^\s;,"]*+)))?+'
    r'[^,"]*+(?:"[^"\\]*+(?:\\.?[^"\\]*+)*+"?[^,"]*+)*+,?+',
    re.DOTALL,
)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse(header: str) -> tuple[str, dict[str, str]]:
    """Return the value of a header in lower case, and its parameters by their names in lower case.

    Parameters that are not valid are left out; of two with one name, the last one counts.
    """
    value, _, rest = header.partition(";")
    found = {}
    for name, quoted, end, plain in PARAMETER.findall(rest):
        if name and (end or plain):
            found[name.lower()] = ESCAPED.sub(r"\1", quoted) if end else plain
    return value.strip().lower(), found


def preferences(lines: Iterable[str]) -> dict[str, str]:
    """Return the values of preferences, the lines of the header `Prefer` (RFC 7240), by their names in lower case.

    Of two with one name, the first one counts.
    """
    found: dict[str, str] = {}
    for name, quoted, plain in PREFERENCE.findall(",".join(lines)):
        found.setdefault(name.lower(), ESCAPED.sub(r"\1", quoted) or plain)
    return found
