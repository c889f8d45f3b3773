"""The refused rows of an import in a form to compare."""

from musicsvc.store.importing.summary import ImportSummary


def reasons(summary: ImportSummary) -> list[tuple[int, str]]:
    """Return the line and the full reason of each refused row."""
    return [(refusal.line, refusal.reason) for refusal in summary.refused]
