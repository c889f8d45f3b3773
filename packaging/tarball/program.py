"""The program of the tarball: the command line, or the process that unpacks foreign files.

In a frozen program `sys.executable` is the program itself. It begins that process as an interpreter would be called.
"""

import sys

PROGRAM = "musicsvc.store.importing.files.unpacking.process"

if sys.argv[1:4] == ["-P", "-m", PROGRAM]:
    from musicsvc.store.importing.files.unpacking import process

    process.main(*sys.argv[4:])
else:
    from musicsvc.cli.main import main

    main()
