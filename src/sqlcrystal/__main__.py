"""`python -m sqlcrystal`: the command line, where the script is not on the path."""

from sqlcrystal.interfaces.cli.app import main

if __name__ == "__main__":
    main()
