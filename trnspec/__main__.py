"""``python -m trnspec``."""

from trnspec.cli import main

if __name__ == "__main__":
    main()
