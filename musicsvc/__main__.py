"""Run the command-line interface, as `musicsvc` or `python -m musicsvc`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C during the imports prints no traceback

from musicsvc.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
