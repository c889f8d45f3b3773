"""Run the command-line interface, as `musicsvc` or `python -m musicsvc`."""

import gc
import signal

gc.disable()  # until the command runs (`later.execute_all`): imports leave no garbage, and looking for it takes long
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C during the imports prints no traceback

from musicsvc.cli.main import main  # noqa: E402 - see above

__all__ = ["main"]

if __name__ == "__main__":
    main()
