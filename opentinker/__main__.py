"""``python -m opentinker``."""

from opentinker.cli import main

if __name__ == '__main__':
    main()
