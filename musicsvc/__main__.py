"""Run the command-line interface as `python -m musicsvc`."""

from musicsvc.cli.main import main

if __name__ == "__main__":
    main()
