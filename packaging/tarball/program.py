"""The program of the tarball: the command line, or the limited program, which unpacks foreign files and draws.

In a frozen program `sys.executable` is the program itself. It begins that process as an interpreter would be called.
"""

import sys

PROGRAM = "musicsvc.limited.program"

if sys.argv[1:4] == ["-P", "-m", PROGRAM]:
    from musicsvc.limited import program

    program.main(*sys.argv[4:])
else:
    from musicsvc.__main__ import main

    main()
