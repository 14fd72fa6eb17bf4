"""Dubito's games in OpenSpiel. Skipped without the extra."""

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed, so no game of ours was tried in it: '.[openspiel]'")
