"""The title of an HTML page and all that its main part shows, as lines of text to compare as a whole."""

import re
from datetime import datetime
from html import unescape

# `[…]` stands for the target of a link or form, the class of a badge, the value of a field, and the chosen option.
RULES = (
    (r"\s+", " "),
    (r".*<title>(.*) · musicsvc</title>.*<main[^>]*>(.*)</main>.*", r"\1\n\2"),
    (r'<nav class="tabs".*?</nav>', ""),
    (r'<input [^>]*name="form_token"[^>]*>', ""),
    (r'<a [^>]*href="([^"]*)"[^>]*>', r"[\1] "),
    (r'<form [^>]*action="([^"]*)"[^>]*>', r"\n[\1] "),
    (r'<span class="badge (\w+)">', r"[\1] "),
    (r'<input [^>]*name="(\w+)"[^>]* value="([^"]*)"[^>]*>', r" [\2]"),
    (r'<option value="(\w+)" selected>', r"[\1] "),
    (r"<details open>", r"\n[open] "),
    (r"</dt> *<dd[^>]*>", ": "),
    (r"</t[dh]> *<t[dh][^>]*>", " | "),
    (r"</?(tr|dt|dd|p|pre|h1|h2|summary|label|article|header|footer|div|details)\b[^>]*>", r"\n"),
    (r"<[^>]+>", ""),
)
TIMES = ("%-d %b %Y, %H:%M:%S UTC", "%-d %b %Y, %H:%M UTC")


def outline(body: bytes) -> list[str]:
    """Return the title of the page and the lines of its main part, without the list of pages of administration.

    Checks that each time is shown as it is written for machines.
    """
    text = body.decode()
    for instant, shown in re.findall(r'<time datetime="([^"]*)">([^<]*)</time>', text):
        moment = datetime.fromisoformat(instant)
        assert shown in {f"{moment:{form}}" for form in TIMES}, (instant, shown)
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return [" ".join(line.split()) for line in unescape(text).split("\n") if line.strip()]
