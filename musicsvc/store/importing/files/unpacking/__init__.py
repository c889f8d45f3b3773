"""What the limited program does with files that claim little and unpack to much, a module for each task."""
