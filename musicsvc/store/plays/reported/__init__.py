"""Plays that accounts report through the API: the rule for own plays, lists, counts, and withdrawal."""
