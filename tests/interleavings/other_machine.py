"""Run `musicsvc` as on another machine: `python -m tests.interleavings.other_machine FOLDER serve …`.

The processes of a machine see the commits of each other to PostgreSQL in a file of shared memory. These use FOLDER.
"""

import sys
from pathlib import Path

from musicsvc.cli.main import main
from musicsvc.store.engine.postgres import changes

if __name__ == "__main__":
    changes.MEMORY = Path(sys.argv.pop(1))
    main()
