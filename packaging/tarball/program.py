"""The program of the tarball: the command line, or the process that reads a workbook.

In a frozen program `sys.executable` is the program itself. It begins that process as an interpreter would be called.
"""

import sys
from pathlib import Path

import musicsvc

READER = Path(musicsvc.__file__).with_name("store") / "importing" / "files" / "workbook_process.py"

if sys.argv[1:3] == ["-P", str(READER)]:
    from musicsvc.store.importing.files import workbook_process

    workbook_process.main(*sys.argv[3:])
else:
    from musicsvc.cli.main import main

    main()
