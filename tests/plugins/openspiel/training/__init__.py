"""Our games in OpenSpiel's world; without its extra all of this is skipped, and says so."""

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no game of ours was tried in it: '.[openspiel]'")
