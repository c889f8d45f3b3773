"""Figures from the durations and times of plays: completion, new listeners, hours, milestones, releases."""

# Here, because the command line reads them before it loads the store.
MOST_DAYS, DEFAULT_DAYS = 365, 28  # since a release
MOST_ALBUMS = 9  # to compare an album with
