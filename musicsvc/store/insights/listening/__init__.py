"""Statistics from the durations and times of plays: completion, new listeners, hours, milestones, releases."""
