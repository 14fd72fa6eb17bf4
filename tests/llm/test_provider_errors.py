"""Every failure of a call has the right name, and no message contains the key."""

import json
import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import cycle, product
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dubito.llm.client import Provider
from dubito.llm.known_errors import Meaning
from dubito.llm.request import AccountFault, TryFailed
from dubito.llm.verdicts import judge_error, judge_error_in_body, parse_retry_after
from dubito.model_settings import Account, Api
from tests.conftest import any_text, in_gate
from tests.llm.kit import KEY, PATH_OF, PROTOCOLS, Line, Response, Server, error_body, respond
from tests.llm.test_providers import build_attempt, provider


def failure(line: Line, protocol: Api, response: Response) -> TryFailed | AccountFault:
    """Return the error that one try with this answer raises."""
    try:
        line(response, build_attempt(protocol))
    except (TryFailed, AccountFault) as error:
        return error
    raise AssertionError("it was received")


def refused(status: int, protocol: Api, kind: str = "some_error", message: str = "no", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, error_body(protocol, kind, message), {"content-type": "application/json", **named})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sdk_does_not_retry(protocol: Api) -> None:
    again = refused(500, protocol, x_should_retry="true", retry_after="0")
    with Server(lambda _: again) as server, closing(provider(server, protocol)) as call, pytest.raises(TryFailed):
        call.send(build_attempt(protocol), 1, 20.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((408, "server"), (409, "server"), (429, "rate_limit")),
        *((500, "server"), (502, "server"), (503, "server"), (504, "server"), (529, "server"), (599, "server")),
    ],
)
def test_transient_error_is_a_failed_try(line: Line, protocol: Api, status: int, kind: str) -> None:
    error = failure(line, protocol, refused(status, protocol))
    assert isinstance(error, TryFailed)
    assert (error.kind, error.retry_after) == (kind, None)
    assert str(error).startswith(f"status {status}: ")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "sentence", "then"),
    [
        (400, "rejected the request (status 400): the very reason", None),
        (401, "refused the key (status 401): the very reason", "; set SOME_KEY, or change `api_key_env` in "),
        (402, "has no credit left (status 402): the very reason", "; top it up"),
        (403, "refused the request (status 403): the very reason", None),
        (404, "found nothing (status 404): the very reason", None),
    ],
)
def test_error_that_the_user_must_fix_is_an_account_fault(
    line: Line, protocol: Api, status: int, sentence: str, then: str | None
) -> None:
    error = failure(line, protocol, refused(status, protocol, message="the very reason"))
    assert isinstance(error, AccountFault)
    message = str(error)
    assert sentence in message
    assert then in message if then else message.endswith(sentence), "without a known cause, there is no advice"
    assert "(SOME_KEY)" in message, "which account"
    assert "\n" not in message
    assert status != 401 or message.endswith("the entry of 'Somebody'"), "whose setting it is"


WAITS: list[tuple[dict[str, str], float | None]] = [  # headers, and the seconds that they request
    ({"retry_after": "7"}, 7.0),
    ({"retry_after": "0.25"}, 0.25),
    ({"retry_after": "0"}, None),
    ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
    ({"retry_after_ms": "soon", "retry_after": "2"}, 2.0),
    ({"retry_after": "30"}, 30.0),
    ({"retry_after": "-1"}, None),
    ({"retry_after": "nan"}, None),
    ({"retry_after": "inf"}, None),
    ({"retry_after": "soon"}, None),
    ({"retry_after": ""}, None),
    ({"retry_after_ms": "250.5"}, 0.2505),
    ({"retry_after_ms": "-5", "retry_after": "2"}, 2.0),
    ({"retry_after": "1e12"}, 1e12),
    ({"retry_after": "9" * 400}, None),
    ({"retry_after": "1,5"}, None),
    ({"retry_after": "0x10"}, None),
    ({"retry_after": "Thu, 01 Jan 2026 00:00:00 GMT"}, None),
    ({"retry_after": "Thu, 32 Foo 2026 25:61:00 GMT"}, None),
]


LIMITED = [("responses", 429), ("chat", 503), ("messages", 529), ("chat", 429)]


@pytest.mark.parametrize(("answer", "wait"), in_gate(product(LIMITED, WAITS), zip(cycle(LIMITED), WAITS)))
def test_wait_stated_by_the_server_is_parsed(
    line: Line, answer: tuple[Api, int], wait: tuple[dict[str, str], float | None]
) -> None:
    (protocol, status), (headers, seconds) = answer, wait
    error = failure(line, protocol, refused(status, protocol, **headers))
    assert isinstance(error, TryFailed)
    assert error.retry_after == seconds


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_retry_after_date_becomes_seconds(line: Line, protocol: Api) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(days=2), usegmt=True)
    error = failure(line, protocol, refused(429, protocol, retry_after=date))
    assert isinstance(error, TryFailed)
    assert error.retry_after is not None
    assert 86_400 < error.retry_after <= 2 * 86_400


@given(any_text() | any_text(characters="Mon, 01 Feb 2026 23:59:59 GMT+-Z"))
@example(" ")
@example("Fri, 31 Dec 9999 23:59:59 GMT")
@example("Thu, 01 Jan 0001 00:00:00 +2359")
def test_any_retry_header_is_parsed_or_ignored(message: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = parse_retry_after({name: message})
        assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize(
    ("protocol", "parameters", "message", "advice"),
    [
        (
            *("messages", {"temperature": 1}, "`temperature` is not supported with this model."),
            "change `parameters.temperature`",
        ),
        ("messages", {"speed": "fast"}, "speed: Extra inputs are not permitted", "remove `speed` from `parameters`"),
        ("chat", {"top_p": 1, "top_k": 2}, "Invalid 'top_k': too many", "change `parameters.top_k`"),
        ("responses", {}, "Invalid 'max_output_tokens': too many", "lower `max_output`"),
        ("chat", {}, "max_tokens is too large: 8192", "lower `max_output`"),
        ("chat", {}, "'max_completion_tokens' is unknown", "set `output_limit: max_tokens`"),
        ("chat", {}, "body, max_completion_tokens: Extra inputs are not permitted", "set `output_limit: max_tokens`"),
        (
            *("messages", {"thinking": {"type": "enabled"}}, "`max_tokens` must be greater than `thinking.b"),
            "raise `max_output`",
        ),
        (
            *("chat", {}, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
            "set `response_format: json_object`",
        ),
        (
            *("chat", {"reasoning": {}, "reasoning_effort": "max"}),
            *("Unsupported value: 'reasoning_effort'", "change `parameters.reasoning_effort`"),
        ),
    ],
)
def test_a_rejected_request_names_the_key_to_change(
    line: Line, protocol: Api, parameters: dict[str, Any], message: str, advice: str
) -> None:
    with pytest.raises(AccountFault) as failed:
        line(refused(400, protocol, message=message), build_attempt(protocol, parameters=parameters))
    assert str(failed.value).endswith(f"; {advice} in the entry of 'Somebody'")
    assert message in str(failed.value)


def test_rate_limit_with_a_billing_link_is_a_rate_limit(line: Line) -> None:
    message = (
        "Rate limit reached for gpt-6 in organization org-1 on requests per min (RPM): Limit 3, Used 3, Requested 1. "
        "Please try again in 20s. You can increase your rate limit by adding a payment method to your account at "
        "https://platform.openai.com/account/billing."
    )
    error = failure(line, "responses", refused(429, "responses", "rate_limit_exceeded", message))
    assert isinstance(error, TryFailed)
    assert error.kind == "rate_limit"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("BadRequestError", "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
        ("some_error", "This endpoint's maximum context length is 131072 tokens. However, you requested 138956 tokens"),
        ("exceed_context_size_error", "request (4390 tokens) exceeds the available context size (4096 tokens), try"),
    ],
)
def test_a_prompt_that_does_not_fit_is_too_long(kind: str, message: str) -> None:
    assert judge_error(400, error_body("chat", kind, message), {}).meaning == "too_long"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("lost", [None, 100])
def test_a_dropped_connection_is_a_failed_try(line: Line, protocol: Api, lost: int | None) -> None:
    error = failure(line, protocol, Response(body="{", lost=lost))
    assert isinstance(error, TryFailed)
    assert error.kind == "connection"
    assert "Connection" in str(error)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_connection_is_a_failed_try(protocol: Api) -> None:
    with socket.socket() as bound:  # bound but not listening, so that nothing else uses the port
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        account = Account(protocol, address, None)
        with closing(Provider(account, address, KEY, 4)) as call, pytest.raises(TryFailed) as failed:
            call.send(build_attempt(protocol), 1, 20.0)
    assert failed.value.kind == "connection"


ODD_BODIES = ["", "<html>Bad gateway</html>", "{", "[]", '{"error": 5}', '{"error": {"code": []}}']


@pytest.mark.parametrize(
    ("protocol", "body"), in_gate(product(PROTOCOLS, ODD_BODIES), zip(cycle(PROTOCOLS), ODD_BODIES))
)
def test_error_body_can_be_anything(line: Line, protocol: Api, body: str) -> None:
    error = failure(line, protocol, Response(502, body))
    assert isinstance(error, TryFailed)
    assert error.kind == "server"
    for status in (400, 403, 404):
        assert isinstance(failure(line, protocol, Response(status, body)), AccountFault)


def test_key_echoed_by_the_server_is_redacted(line: Line, at_length: bool, subtests: pytest.Subtests) -> None:
    """The key is in a sentence, twice, alone, in a page, and across the point where the text is shortened."""
    for protocol in PROTOCOLS:
        for status in [400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 500, 503, 529]:
            with subtests.test(protocol=protocol, status=status):
                bodies = [
                    error_body(protocol, "some_error", f"Incorrect API key provided: {KEY}."),
                    error_body(protocol, KEY, KEY),
                    *(KEY, f"<html><b>{KEY}</b></html>", "x" * 215 + KEY),
                ]
                for body in bodies if at_length else [bodies[status % 5]]:
                    error = failure(line, protocol, Response(status, body))
                    assert KEY not in str(error)
                    assert KEY not in repr(error)
                    assert KEY[:12] not in str(error)
                    assert error.__cause__ is None
                    assert error.__suppress_context__, "nor in a traceback"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_is_one_printable_line(line: Line, protocol: Api) -> None:
    error = failure(line, protocol, Response(500, "\x1b[2J two\r\nlines" + "x" * 5000))
    assert str(error).isprintable()
    assert len(str(error)) < 300


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(line: Line, protocol: Api, status: int) -> None:
    """Questions are not sent to servers that the user did not name, and their replies are not accepted."""
    with Server(lambda request: respond(request.protocol)) as other:
        moved = Response(status, "", {"location": other.base_url(protocol) + PATH_OF[protocol]})
        error = failure(line, protocol, moved)
        assert other.requests == []
        assert isinstance(error, AccountFault)
        assert f"redirects to another address (status {status}): {other.address}" in str(error)
        assert str(error).endswith("change `base_url` in the entry of 'Somebody'")


def test_redirect_of_a_remote_server_is_not_followed() -> None:
    """Remote servers use another client, the SDK's own."""
    for protocol in PROTOCOLS:
        provider = Provider(Account(protocol, "https://far.example/v1", "SOME_KEY"), "https://far.example/v1", KEY, 1)
        assert provider._client[0]._client.follow_redirects is False
        provider.close()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text(8) | st.sampled_from(["429", "{", '[{"']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "code", "type", "message", "details", "status", "metadata", "raw", "reasons"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.integers(400, 599), ANYTHING | any_text())
@example(429, {"error": {"details": [{"retryDelay": "9" * 400 + "s"}]}})
@example(400, {"error": {"code": "9" * 400, "message": {"message": ["x"]}}})
def test_any_error_has_a_verdict(status: int, error: Any) -> None:
    for found in (
        judge_error(status, error if isinstance(error, str) else json.dumps(error), {}),
        judge_error_in_body(error, {}),
    ):
        assert found.meaning in get_args(Meaning)
        assert found.retry_after is None or 0 <= found.retry_after < float("inf")


def test_endlessly_nested_error_has_a_verdict() -> None:
    error: Any = []
    for _ in range(100_000):
        error = {"error": [error]}
    assert judge_error_in_body(error, {}).meaning == "server"
    assert judge_error(500, "[" * 100_000, {}).meaning == "server"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 6m0s.", 360),
        ("Please try again in 350ms.", 0.35),
        ("try again in 1h2m3.5s", 3723.5),
        ("retry in 2 minutes", 120),
        ("Please retry in 45.578569677s.", 45.578569677),
        ("Try again in 1 day", None),
        ("Please try again later", None),
    ],
)
def test_wait_stated_only_in_the_body_is_used(words: str, seconds: float | None) -> None:
    text = json.dumps({"error": {"message": words}})
    assert judge_error(429, text, {}).retry_after == (seconds if seconds is None else pytest.approx(seconds))
    assert judge_error(429, text, {"retry-after": "3"}).retry_after == 3, "a header goes before"
    assert judge_error(429, text, {"retry-after": "0"}).retry_after == (seconds and pytest.approx(seconds)), (
        "it says none"
    )
    assert judge_error(400, text, {}).retry_after is None
