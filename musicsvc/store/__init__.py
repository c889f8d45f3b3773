"""All persistence and every rule about data; knows nothing of HTTP or of a terminal."""
