"""A pytest plugin that tests a user's own prompts. It is configured in one line:

    dubito_prompts = ["prompts/mine"]

Each folder contains a prompt. The `prompt_cassette` fixture tests a prompt with recorded replies. If neither is used,
the plugin does nothing and does not import Dubito.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dubito.workshop.trial import ScoreRow

_DESCRIPTION = "prompt.yaml"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("dubito_prompts", "folders of Dubito prompts to test", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Also collect the prompts, unless the command line specifies what to collect."""
    folders = [folder.resolve() for folder in config.getini("dubito_prompts")]
    for folder in folders:
        if not (folder / _DESCRIPTION).is_file():
            raise pytest.UsageError(f"dubito_prompts: {folder} is not a prompt because it has no {_DESCRIPTION}")
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        collected = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
        config.args += [str(folder) for folder in folders if not any(map(folder.is_relative_to, collected))]


@pytest.fixture
def prompt_cassette() -> Callable[[str, str | Path], "ScoreRow"]:
    """Return a function that tests a prompt with a cassette and returns its figures over all positions.

    Its arguments are a prompt's name or folder and a cassette's path. The test fails if the cassette has no reply to
    one of the prompt's requests.
    """
    return _score_with_cassette


def _score_with_cassette(prompt: str, cassette: str | Path) -> "ScoreRow":
    from dubito.errors import DubitoError
    from dubito.workshop.cassettes import score_prompt

    try:
        return score_prompt(str(prompt), Path(cassette), Path.cwd())
    except DubitoError as error:
        pytest.fail(str(error), pytrace=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "PromptFile | None":
    folders = (folder.resolve() for folder in parent.config.getini("dubito_prompts"))
    if file_path.name == _DESCRIPTION and file_path.parent.resolve() in folders:
        return PromptFile.from_parent(parent, path=file_path)
    return None


class PromptFile(pytest.File):
    """The tests for one prompt."""

    def collect(self) -> Iterator["PromptItem"]:
        from dubito.llm.prompts import game_of_folder  # imported late because most users of pytest do not test prompts
        from dubito.workshop.checks import prompt_checks

        folder = self.path.parent
        for name, check in prompt_checks(folder, game_of_folder(folder, Path.cwd())):
            yield PromptItem.from_parent(self, name=name, check=check)


class PromptItem(pytest.Item):
    """One check of one prompt."""

    def __init__(self, *, check: Callable[[], object], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._check = check

    def runtest(self) -> None:
        self._check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the message of a failed check, or a traceback for errors that no prompt can cause."""
        from dubito.errors import DubitoError

        if isinstance(excinfo.value, DubitoError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"prompt {self.path.parent.name}: {self.name}"
