"""The entry point of `python -m dubito` and of the command `dubito`."""

import gc
import sys
from typing import Final

_NEW_OBJECTS: Final = 10_000  # allocations between collections: modules and classes, which load first, are not garbage


def main() -> None:
    """Run the command line. Ctrl-C works even while modules are still loading."""
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from dubito.cli.main import main as command
    except KeyboardInterrupt:
        print("dubito: stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    try:
        command()
    finally:
        gc.freeze()  # the process is ending, and its last garbage collection would visit every object


if __name__ == "__main__":
    main()
