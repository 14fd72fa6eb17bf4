"""What servers say, and what Dubito says about it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.files import read_yaml
from dubito.llm.known_errors import KNOWN_ERRORS
from dubito.llm.protocols import read_reply
from dubito.llm.provider_errors import ErrorReader
from dubito.llm.redaction import Redaction
from dubito.llm.request import AccountFault, TryFailed
from dubito.llm.verdicts import judge_error
from dubito.model_settings import Account, Api
from tests.llm.kit import Line, Response
from tests.llm.test_providers import build_attempt

ADDRESS: Final = "http://models.example/v1"
ERRORS: Final = read_yaml(Path(__file__).with_name("server_errors.yaml"))


def text_of(row: dict[str, Any]) -> str:
    return row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])


def error_of(row: dict[str, Any]) -> TryFailed | AccountFault:
    """Return the error that a call with this response raises."""
    api: Api = row.get("asks", "chat")
    reader = ErrorReader(Account(api, ADDRESS, "SOME_KEY"), ADDRESS, Redaction("sk-the-key-of-somebody"))
    return reader.read_status(row["status"], text_of(row), {}, build_attempt(api, parameters=row.get("parameters", {})))


def sentence_of(row: dict[str, Any]) -> str:
    """Return the message in the error, or what is shown instead."""
    if text := row.get("said"):
        return str(text)
    body = row["body"][0] if isinstance(row["body"], list) else row["body"]
    inner = body.get("error", body)
    return str(inner if isinstance(inner, str) else inner.get("message") or inner["detail"])


def test_error_is_told_in_the_servers_words_with_advice_only_if_it_is_known(subtests: pytest.Subtests) -> None:
    rows = [row for row in ERRORS if "bad_output" not in row]
    assert len(rows) >= 40
    for row in rows:
        with subtests.test(server=row["server"], status=row["status"], sentence=sentence_of(row)):
            error = error_of(row)
            assert sentence_of(row)[:120] in error.quote
            if kind := row.get("kind"):
                assert isinstance(error, TryFailed)
                assert error.kind == kind
                assert error.hint.startswith(row.get("advice", ""))
                assert row.get("advice") or not error.hint
            else:
                assert isinstance(error, AccountFault)
                assert f"(SOME_KEY) {row['problem']} (status {row['status']}): {error.quote}" in str(error)
                assert str(error).rpartition(error.quote)[2].startswith(f"; {row['advice']}" if row["advice"] else "")
                assert row["advice"] or str(error).endswith(error.quote)


def test_error_about_the_models_output_is_an_unusable_reply(line: Line, subtests: pytest.Subtests) -> None:
    for row in (row for row in ERRORS if "bad_output" in row):
        with subtests.test(server=row["server"]):
            received = line(Response(row["status"], json.dumps(row["body"])), build_attempt("chat"))
            reply = read_reply("chat", received)
            assert (received.status, reply.finish, reply.text) == (row["status"], "invalid", row["bad_output"])
            assert reply.problem.startswith(f"the server rejected it: {row['body']['error']['message'][:40]}")


def test_each_row_of_the_table_has_a_source_and_an_example() -> None:
    verdicts = [judge_error(row["status"], text_of(row), {}, row.get("asks", "chat")) for row in ERRORS]
    examples = [verdict.known for verdict in verdicts]
    for known in KNOWN_ERRORS:
        assert known.source
        assert known in examples, f"no example of {known.problem or known.pattern}"
        assert bool(known.setting) >= ("{setting}" in known.advice or bool(known.value))
