"""The content of an HTML page: texts of marked elements, tables, links and form fields."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "img", "br", "rect", "hr"}
ISOLATES = str.maketrans("", "", "\u2068\u2069")


class HtmlPage(HTMLParser):
    """A parsed page.

    `figures`: the text of each element with `data-figure`, by its value. `tables`: of each table, by the text of its
    first heading and in order, the rows as lists of texts. `open_cells`: (first heading of the table, row, column) of
    each cell with `data-open`. `forms`: of each form, by its action, the fields that a browser sends. `attributes`:
    (tag, attributes) of all elements in order.
    """

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.figures: dict[str, str] = {}
        self.growth: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.open_cells: list[tuple[str, int, int]] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.forms: dict[str, dict[str, str]] = {}
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.text = ""
        self.feed(body.decode())
        self.close()

    def table(self, heading: str) -> list[list[str]]:
        """Return the rows without the head of the table with this first heading."""
        return next(rows[1:] for rows in self.tables if rows[0][0] == heading)

    def links(self) -> list[str]:
        return [found["href"] or "" for tag, found in self.attributes if tag == "a"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.attributes.append((tag, dict(attrs)))
        if tag == "form":
            self.forms[str(dict(attrs).get("action"))] = {}
        self._note_field(tag, dict(attrs))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        if tag not in VOID:
            self._open.append((tag, dict(attrs), []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element without content."""
        self.attributes.append((tag, dict(attrs)))

    def _note_field(self, tag: str, attributes: dict[str, str | None]) -> None:
        """Note the value of an input, and of a select: that of the first option, or of the one that is selected."""
        fields = next(reversed(self.forms.values()), {})
        if tag == "input" and ("checked" in attributes or attributes.get("type") != "checkbox"):
            default = "on" if attributes.get("type") == "checkbox" else ""
            fields[str(attributes.get("name"))] = attributes.get("value") or default
        choice = next((str(opened["name"]) for name, opened, _ in self._open if name == "select"), None)
        if tag == "option" and choice is not None and ("selected" in attributes or choice not in fields):
            fields[choice] = attributes.get("value") or ""

    def handle_data(self, data: str) -> None:
        """Note a text, without the marks around the names of a notice, which nobody sees."""
        data = data.translate(ISOLATES)
        for *_, texts in self._open:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        """Note the text of an element."""
        opened, attributes, texts = self._open.pop()
        assert opened == tag, f"<{opened}> ends with </{tag}>"
        if opened == "textarea":
            next(reversed(self.forms.values()))[str(attributes["name"])] = "".join(texts).removeprefix("\n")
        text = " ".join("".join(texts).split())
        if name := attributes.get("data-figure"):
            assert name not in self.figures, name
            self.figures[name] = text
        if "data-growth" in attributes:
            self.growth.append(text)
        if tag in {"td", "th"}:
            self.tables[-1][-1].append(text)
            if "data-open" in attributes:
                rows = self.tables[-1]
                self.open_cells.append((rows[0][0], len(rows) - 1, len(rows[-1]) - 1))
        if tag == "body":
            self.text = text
