"""The limited program: does in a process of its own what may take too much memory or time, or crash (`program.py`)."""
