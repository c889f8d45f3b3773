"""A window of the browser that notes errors and requests to other origins."""

from collections.abc import Sequence

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

PATIENCE = 20_000  # milliseconds
ERROR = 400  # the first status of an error
CANCELLED = "net::ERR_ABORTED"  # by the browser, such as for a picture of a part of the page that is replaced


class Visit:
    """A context of the browser with one page.

    `errors`: messages on its console. `foreign`: addresses outside of the root URL. `failed`: responses with an
    error, and requests without a response.
    """

    def __init__(self, context: BrowserContext, root: str) -> None:
        context.set_default_timeout(PATIENCE)
        self._context = context
        self._root = root
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.failed: list[str] = []
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("request", self._note_request)
        context.on("requestfailed", self._note_failure)
        context.on("response", self._note_response)

    def violations(self, axe: str, rules: Sequence[str] = ()) -> list[str]:
        """Return the violations of all or these rules that axe-core finds on the page, with the elements concerned."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(axe)
        options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
        found = self.page.evaluate("options => axe.run(options).then(found => found.violations)", options)
        return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]

    def add_cookie(self, name: str, value: str) -> None:
        self._context.add_cookies([{"name": name, "value": value, "url": self._root}])

    def close(self) -> None:
        self._context.close()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(f"{message.type}: {message.text}")

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self._root}/", "data:")):
            self.foreign.append(request.url)

    def _note_failure(self, request: Request) -> None:
        if request.failure != CANCELLED:
            self.failed.append(f"{request.failure} {request.url}")

    def _note_response(self, response: Response) -> None:
        if response.status >= ERROR:
            self.failed.append(f"{response.status} {response.url}")
