"""Each scene's output matches its frozen text, and kept files can be opened."""

from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.freeze.scenes import AT_LENGTH, SCENES, play_scene, playable, said_file


@pytest.mark.parametrize("name", in_gate(SCENES, SCENES.keys() - AT_LENGTH))
def test_scene_output_is_unchanged(shell: Shell, name: str) -> None:
    if not playable(name):
        pytest.skip("OpenSpiel is an extra: pip install 'dubito[openspiel]'")
    output = play_scene(name, shell)
    Path("said.txt").write_text(output, encoding="utf-8")  # pytest keeps the folder of a failed test
    assert output.splitlines() == said_file(name).read_text(encoding="utf-8").splitlines()
