"""Golden renderings; `dubito prompts golden --game defuse NAME` writes them anew when a change was meant."""

from pathlib import Path

import pytest

from dubito.game_registry import find_game
from dubito.workshop.golden import renderings
from tests.cli.kit import REPO

FOLDER = REPO / "prompts" / "defuse"
