"""Tasks of the limited program for files that claim little and unpack to much, a module for each task."""
