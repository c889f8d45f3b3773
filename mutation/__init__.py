"""Mutation run: break the code one place at a time and report the breaks that no test notices."""
