"""Search indexes of names, and their updates."""
