"""`python -m dubito`, and the command `dubito`."""

import gc
import sys
from typing import Final

_NEW_OBJECTS: Final = 10_000  # allocations between collections: modules and classes, which load first, are not garbage


def main() -> None:
    """Run the command line; Ctrl-C works in the same way while modules are still being loaded."""
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from dubito.cli.main import main as command
    except KeyboardInterrupt:
        print("dubito: stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    try:
        command()
    finally:
        gc.freeze()  # the process is ending: its last garbage collection would visit every object


if __name__ == "__main__":
    main()
