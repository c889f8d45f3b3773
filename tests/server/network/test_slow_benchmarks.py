"""Short runs of the benchmarks of slow clients, idle ones and floods: their bounds hold for a few clients too."""

from pathlib import Path

import pytest

from tests.support.program import run_benchmark

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
# Bounds on delays hold only for a machine without other work.
UNHURRIED = ("--late", "5")


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "slow_clients.py",
            ("--clients", "60", "--seconds", "2.5", "--patience", "0.1", "--transport", "plain", *UNHURRIED),
        ),
        ("idle_connections.py", ("--connections", "200", "--seconds", "0.5", "--transport", "plain", *UNHURRIED)),
        (
            "unread_answers.py",
            ("--worlds", "albums", "--scale", "0.22", "--readers", "2", "--seconds", "1.5", *UNHURRIED),
        ),
        ("large_bodies.py", ("--seconds", "0.3", "--kinds", "integers", *UNHURRIED)),
        ("connection_flood.py", ("--seconds", "1", "--connections", "50", "--rate", "300", *UNHURRIED)),
    ],
)
def test_the_promises_hold_in_short(name: str, options: tuple[str, ...]) -> None:
    done = run_benchmark(BENCHMARKS / name, *options, seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "memory:" in done.stdout
