"""Forms and queries of the pages of administration."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from musicsvc.server.schemas.fields import (
    DIGITS_ONLY,
    SEARCH_NAMES,
    Email,
    NameText,
    PageNumber,
    Query,
    Text,
    empty_is_none,
)
from musicsvc.server.schemas.pages.form import Checkbox, Form
from musicsvc.store.accounts import api_access, users
from musicsvc.store.catalog.names import LARGEST_ID
from musicsvc.wording import LONGEST_NAME

Id = Annotated[int, Field(ge=1, le=LARGEST_ID), DIGITS_ONLY]
Before = Annotated[int | None, Field(ge=1, le=LARGEST_ID), DIGITS_ONLY]
Typed = Annotated[str, Text(0, LONGEST_NAME)]


class RequestsQuery(Query):
    show: Literal["pending", "decided"] = "pending"
    before: Before = None


class SearchQuery(Query):
    """A search in a list. `before`: show rows with lower ids, for the next page."""

    other_names: ClassVar = SEARCH_NAMES

    q: Typed = ""
    before: Before = None


class OlderQuery(Query):
    before: Before = None


class ActivityQuery(Query):
    """Filters of the activity log, as they were typed. `before`: only older entries; in microseconds since 1970.

    `by`: what the calls are summed by.

    `hidden`: whether calls that are hidden by default are shown: for static files, and the clicks of the reader.
    """

    kind: Literal["all", "calls", "events"] = "all"
    account: Typed = ""
    token: Typed = ""
    address: Typed = ""
    status: Typed = ""
    route: Typed = ""
    since: Typed = ""
    until: Typed = ""
    by: Literal["token", "address", "route", "status"] = "token"
    hidden: Literal["", "shown"] = ""
    before: Before = None


class HealthQuery(Query):
    """`checks`: run the checks, which read the whole database."""

    checks: Literal["", "run"] = ""


class ReasonForm(Form):
    """A reason that is required."""

    reason: Annotated[str, Text(1, api_access.LONGEST["reason"])]


class WithdrawalForm(Form):
    """The plays of an account to withdraw. Unless they are `confirmed`, they are shown first."""

    since: Annotated[str | None, Text(1, 64)] = None
    track: Annotated[int | None, Field(ge=1, le=LARGEST_ID), DIGITS_ONLY] = None
    confirmed: Checkbox = False


class ArtistsQuery(Query):
    """A search in all artists, or those that the account `manager` manages. `page`: the number of the page."""

    other_names: ClassVar = SEARCH_NAMES

    q: Typed = ""
    manager: Annotated[Id | None, empty_is_none(Id)] = None
    page: PageNumber = 1


class ManagerForm(Form):
    """Base of forms whose field `manager` is the e-mail of the account that manages artists from now on."""

    manager: ClassVar[str]

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:  # noqa: ARG003 - as in Body
        """Return an error message for the e-mail if no account has it."""
        email = str(sent.get(cls.manager) or "").strip()
        known = not email or cls.manager in faults or users.is_taken(email)
        return {} if known else {cls.manager: users.NO_ACCOUNT.format(email)}


class AssignForm(ManagerForm):
    """The account that manages artists from now on. `was`: the one when the form was shown, 0 for none."""

    manager: ClassVar = "email"

    email: Email
    was: Annotated[int | None, Field(ge=0, le=LARGEST_ID), DIGITS_ONLY] = None


class DeletionForm(ManagerForm):
    """The account that manages the artists of a deleted one from now on, or whether they are deleted, too."""

    manager: ClassVar = "artists_to"

    artists_to: Email | None = None
    with_artists: Checkbox = False


class EditAccountForm(Form):
    """The e-mail and the display name of an account. `was_…`: the values when the form was shown."""

    email: Email
    display_name: Annotated[str, NameText(1, users.NAME_LENGTH)]
    was_email: str | None = None
    was_display_name: str | None = None


class AccountForm(Form):
    """A new account."""

    email: Email
    display_name: Annotated[str | None, NameText(1, users.NAME_LENGTH)] = None
