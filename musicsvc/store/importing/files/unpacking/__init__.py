"""The limited program: reads files that claim little and unpack to much, in a process of its own (`process.py`)."""
