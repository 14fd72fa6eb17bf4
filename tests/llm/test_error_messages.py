"""One formatter builds an error's message from its fields."""

import pytest

from dubito.errors import UsageError, format_error
from dubito.llm.request import AccountFault
from dubito.llm.settings import check_settings, setting_fields

QUOTE = "the 5 of hearts is held by seat 2"


def fault(setting: str = "max_output", player: str = "asker", value: str = "") -> AccountFault:
    fields = setting_fields(setting, player, value)
    return AccountFault("house rejected the request", quote=QUOTE, hint="change {setting}", **fields)


@pytest.mark.parametrize(
    ("error", "config", "flags"),
    [
        (fault(), "`max_output` in the entry of 'asker'", "`--max-output`"),
        (fault("api", value="chat"), "`api: chat` in the entry of 'asker'", "`--api chat`"),
        (fault("api", "openai:m", "chat"), "`--api chat` (`api: chat` in a config)", "`--api chat`"),
        (fault("model", "openai:m"), "the model's name in 'openai:m'", "`--model`"),
        (fault("model", "gemini:m"), "the model's name in 'gemini:m'", "`--model`"),
        (fault("parameters.top_p"), "`parameters.top_p` in the entry of 'asker'", "`--parameters.top-p`"),
    ],
)
def test_setting_is_shown_where_user_sets_it(error: AccountFault, config: str, flags: str) -> None:
    assert str(error) == f"house rejected the request: {QUOTE}; change {config}"
    assert format_error(error, as_flags=True) == f"house rejected the request: {QUOTE}; change {flags}"


def test_server_quote_can_be_omitted() -> None:
    assert format_error(fault(), with_quote=False) == (
        "house rejected the request; change `max_output` in the entry of 'asker'"
    )


def test_refused_setting_names_player_or_flag() -> None:
    with pytest.raises(UsageError) as refused:
        check_settings("asker", {"model": "m", "api": "chat", "max_output": 1})
    assert (refused.value.player, refused.value.setting) == ("asker", "max_output")
    assert str(refused.value) == "asker: max_output: must be at least 16"
    assert format_error(refused.value, as_flags=True) == "--max-output: must be at least 16"
