"""Create example data (fixtures), and synthetic data of any size for tests and benchmarks."""
