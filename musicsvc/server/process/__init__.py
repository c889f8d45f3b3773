"""Operating-system processes of a server: workers, signals, memory and open files."""
