"""`python -m musicsvc` is the same as `musicsvc`."""

from musicsvc.cli.main import main

if __name__ == "__main__":
    main()
