"""`python -m hops`: the command line, where no `hops` is on the path."""

from hops.cli.main import main

if __name__ == "__main__":
    main()
