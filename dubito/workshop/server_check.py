"""Check a model server: what it supports, and the settings with which its replies are answers.

The first check asks a prompt's longest question, as the preflight of a run does. If the server names a setting that
helps, or the reply would be an answer with another `read`, the check applies it and asks again. The other checks send
short questions. Nothing is cached, recorded or retried.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

from dubito.errors import one_line
from dubito.experiment.servers import EmbeddedServers
from dubito.game import Bool, Choice, Game, Node
from dubito.llm.answers import Form, build_form, extract_answer, find_helpful_part, find_last_object
from dubito.llm.client import NotFound, Provider
from dubito.llm.context import CONTEXT_HINT, MAX_PER_TOKEN, is_count_unusual, is_cut_compared_with, prompt_size
from dubito.llm.decide import put_question
from dubito.llm.logprobs import read_yes_probability
from dubito.llm.preflight import build_short_request
from dubito.llm.prompts import Prompt, Sample
from dubito.llm.protocols import build_request, find_protocol, read_reply
from dubito.llm.protocols.wire import Exchange, as_mapping
from dubito.llm.provider_errors import error_in_reply
from dubito.llm.request import AccountFault, Attempt, AttemptFailed, Place, Reply, Request, TryFailed, parse_json
from dubito.llm.settings import build_account, load_key
from dubito.llm.streamed import stream_to
from dubito.llm.threads import map_in_threads
from dubito.model_settings import ModelSettings, embedded_kind
from dubito.store.spend import Spend

Status = Literal["ok", "note", "failed"]
PARALLEL_CALLS: Final = 4
_FIXABLE: Final = ("system", "output_limit", "response_format", "api")
_OUTPUT_LIMIT: Final = 32  # tokens
_MAX_QUOTED: Final = 100  # characters
_UNKNOWN_MODEL: Final = "dubito-no-such-model"
_CODE_WORD: Final = "kestrel"
_YES_OR_NO: Final = build_form(("answer",), Node("check", "", Bool()))
_WITH_REASONING: Final = build_form(("reasoning", "answer"), Node("check", "", Bool()))
_TEXT: Final = build_form(("answer",), Node("check", "", Choice(None)))
_CACHE_KEY: Final = "dubito-check"
_LOCAL_OPTIONS: Final = "vLLM `--reasoning-parser`, llama.cpp `--reasoning-format`"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    status: Status
    finding: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The results of all checks, and the settings that were found to work."""

    findings: list[Finding]
    settings: ModelSettings
    model: str | None  # the model that the replies name
    calls: int
    seconds: float

    @property
    def is_usable(self) -> bool:
        return all(finding.status != "failed" for finding in self.findings)


@contextmanager
def open_provider(name: str, settings: ModelSettings, game: Game, tell: Callable[[str], None]) -> Iterator[Provider]:
    """Open a client of the model's server, which is started first if it is a built-in one."""
    account = build_account(settings)
    with ExitStack() as running:
        address = account.server
        if embedded_kind(address):
            servers = EmbeddedServers(game, PARALLEL_CALLS, running, tell)
            address = servers.address(account.api, address, settings.model)
        yield running.enter_context(closing(Provider(account, address, load_key(account, name), PARALLEL_CALLS)))


def list_models(name: str, settings: ModelSettings, game: Game, tell: Callable[[str], None]) -> list[str]:
    """Return the names of the models that the server lists. Raises AccountFault if it lists none."""
    wire = find_protocol(settings.api)
    request = Request(settings.api, wire.models_path, {"model": settings.model})
    attempt = Attempt(request, "check", Place(name, -1, -1, 0, 0, 0, "check"))
    with open_provider(name, settings, game, tell) as provider:
        try:
            listed = as_mapping(parse_json(provider.get(attempt, settings.deadline, wire.models_path).raw))
        except (TryFailed, NotFound) as error:
            raise AccountFault(
                f"the server lists no models ({error})", hint="give MODEL, such as openai:NAME"
            ) from None
    return sorted(wire.list_models(listed))


@dataclass(eq=False, slots=True)
class ServerCheck:
    """The checks of one model. Each change of its settings opens a new client, since it can change the API."""

    name: str
    settings: ModelSettings
    prompt: Prompt
    game: Game
    tell: Callable[[str], None]
    _provider: Provider = field(init=False, repr=False)
    _numbers: Iterator[int] = field(default_factory=count)
    _replies: list[tuple[Request, Reply]] = field(default_factory=list)
    _findings: list[Finding] = field(default_factory=list)

    def run(self) -> ServerReport:
        """Run all checks. Raises AccountFault if the server does not answer at all."""
        start = time.monotonic()
        sample = self._find_working_settings()
        with open_provider(self.name, self.settings, self.game, self.tell) as self._provider:
            self._check("schema", self._check_schema)
            self._check("system role", self._check_system_role)
            self._check("token counts", self._check_token_counts)
            self._check("whole prompt", lambda: self._check_whole_prompt(sample))
            self._check("output limit", self._check_output_limit)
            wire = find_protocol(self.settings.api)
            if wire.event_reader:
                self._check("streaming", self._check_streaming)
            if "belief" in wire.own_settings:
                self._check("log-probabilities", self._check_logprobs)
            self._check("parallel calls", self._check_parallel_calls)
            self._check("errors", self._check_errors)
        self._findings.append(self._describe_finish_reasons())
        self._findings.insert(1, self._describe_reasoning())
        model = next((reply.model for _, reply in self._replies if reply.model), None)
        return ServerReport(self._findings, self.settings, model, next(self._numbers), time.monotonic() - start)

    def _find_working_settings(self) -> Sample:
        """Ask the prompt's longest question, with other settings as long as they are known to help."""
        changes = list[tuple[str, str]]()
        while True:
            sample = max(self.prompt.for_api(self.settings.api).samples, key=lambda one: len(one[0].user))
            with open_provider(self.name, self.settings, self.game, self.tell) as self._provider:
                try:
                    place = Place(self.name, -1, -1, 0, 0, 0, "check")
                    once = self.settings.model_copy(update={"reasks": 0})
                    put_question(*sample, once, place, lambda place: "check", self)
                except AccountFault as error:
                    change = (error.setting, error.value)
                    if error.setting not in _FIXABLE or not error.value or change in changes:
                        raise
                except AttemptFailed as error:
                    change = ("read", self._find_part(sample) or "")
                    if change[1] in ("", self.settings.read):
                        quote = ": ".join(filter(None, (error.detail, one_line(error.text or "", _MAX_QUOTED))))
                        self._findings.append(Finding("answer", "failed", f"{error.cause}: {quote}", error.advice))
                        return sample
                except TryFailed as error:
                    raise AccountFault(
                        str(error), hint=error.hint, setting=error.setting, player=error.player, where=error.where
                    ) from None
                else:
                    applied = f", with {', '.join(f'`{key}: {value}`' for key, value in changes)}" if changes else ""
                    self._findings.append(Finding("answer", "note" if changes else "ok", f"a real question{applied}"))
                    return sample
            changes.append(change)
            self.settings = self.settings.model_copy(update=dict([change]))

    def _find_part(self, sample: Sample) -> str | None:
        """Return the value of `read` with which the last reply would be an answer."""
        return find_helpful_part(self._replies[-1][1], sample[1]) if isinstance(sample[1], Form) else None

    def ask(self, attempt: Attempt) -> Reply:
        """Make one call. Raises AttemptFailed, TryFailed or AccountFault."""
        received = self._provider.send(attempt, next(self._numbers) + 1, self.settings.deadline)
        reply = read_reply(attempt.request.protocol, received)
        failed = error_in_reply(self._provider.errors, reply, attempt, Spend(calls=1))
        if failed is not None:
            raise failed
        self._replies.append((attempt.request, reply))
        return reply

    def _send(self, request: Request) -> Reply:
        return self.ask(Attempt(request, "check", Place(self.name, -1, -1, 0, 0, 0, "check")))

    def _build(self, system: str, user: str, form: Form = _YES_OR_NO, **changes: object) -> Request:
        settings = self.settings.model_copy(update=changes)
        return build_request(settings, Exchange(system, user, form.schema), _CACHE_KEY)

    def _check(self, name: str, check: Callable[[], tuple[Status, str, str]]) -> None:
        """Run a check. An error that the server reports is its result."""
        try:
            finding = Finding(name, *check())
        except (TryFailed, AccountFault) as error:
            hint = error.hint.replace("{setting}", error.where)
            finding = Finding(name, "failed", ": ".join(filter(None, (error.problem, error.quote))), hint)
        self._findings.append(finding)

    def _describe_reasoning(self) -> Finding:
        replies = [reply for _, reply in self._replies]
        if self.settings.read == "reasoning":
            return Finding("reasoning", "note", "the answer is at the end of the reasoning, instead of in a text")
        if any((reply.text or "").lstrip().startswith("<think") for reply in replies):
            advice = f"let the server separate it ({_LOCAL_OPTIONS}), or set `read: last_object`"
            return Finding("reasoning", "note", "it is in the text", advice)
        if any(reply.thoughts for reply in replies):
            return Finding("reasoning", "ok", "it is separate from the text")
        hidden = sum(reply.usage.reasoning for reply in replies if reply.usage)
        return Finding("reasoning", "ok", f"{hidden:,} hidden tokens" if hidden else "the replies have none")

    def _describe_finish_reasons(self) -> Finding:
        others = sum(reply.finish == "other" for _, reply in self._replies)
        if others:
            found = f"{others} of {len(self._replies)} replies have an unknown one, so a reply that is cut looks whole"
            return Finding("finish reasons", "note", found)
        kinds = sorted({reply.finish for _, reply in self._replies})
        return Finding("finish reasons", "ok", f"known: {', '.join(kinds)}")

    def _check_schema(self) -> tuple[Status, str, str]:
        """Ask without a word about JSON, so that only the schema can be the reason for it."""
        reply = self._send(self._build("Answer the question.", "Is nine larger than seven?"))
        text = extract_answer(reply, self.settings.read) or reply.text or ""
        object_text = find_last_object(text)
        if object_text == text.strip():
            return "ok", "the reply has the form of the schema, which the question did not mention", ""
        found = one_line(text, _MAX_QUOTED) or reply.problem
        advice = "" if self.settings.api == "chat" else "set `api: chat`, in which more servers follow the schema"
        return "note", f"it is ignored: {found}", advice

    def _check_system_role(self) -> tuple[Status, str, str]:
        if self.settings.system == "user":
            return "note", "the server does not accept a system message, so the rules are in the user's", ""
        system = f"The code word is {_CODE_WORD}. If someone asks for the code word, answer with it."
        reply = self._send(self._build(system, "What is the code word? Reply with a JSON object.", _TEXT))
        if _CODE_WORD in f"{reply.text} {reply.thoughts}":
            return "ok", "the reply repeats a word of the system message", ""
        found = one_line(reply.text or "", _MAX_QUOTED) or reply.problem
        return "note", f"the reply does not repeat a word of the system message: {found}", ""

    def _check_token_counts(self) -> tuple[Status, str, str]:
        request, reply = self._longest
        if reply.usage is None:
            return "note", "none are reported, so each call counts at its highest possible price", ""
        counted = f"{reply.usage.input:,} tokens for a prompt of {prompt_size(request):,} characters"
        if is_count_unusual(request, reply) or reply.usage.input * MAX_PER_TOKEN < prompt_size(request):
            return "note", f"unusual: {counted}", "check the counts before you trust `budget`"
        return "ok", counted, ""

    def _check_whole_prompt(self, sample: Sample) -> tuple[Status, str, str]:
        """Compare the counts of a long and a short prompt, as the preflight does."""
        request, reply = self._longest
        short_request = build_short_request(self.settings, sample)
        short = self._send(short_request)
        if reply.usage is None or short.usage is None:
            return "note", "unknown without token counts", ""
        if is_cut_compared_with(request, reply, short_request, short):
            return "failed", f"prompts are cut at about {reply.usage.input:,} tokens", CONTEXT_HINT
        return "ok", f"{reply.usage.input:,} tokens, and {short.usage.input:,} for its beginning", ""

    @property
    def _longest(self) -> tuple[Request, Reply]:
        """The request with the longest prompt so far, with its reply."""
        return max(self._replies, key=lambda pair: prompt_size(pair[0]))

    def _check_output_limit(self) -> tuple[Status, str, str]:
        user = "Count from one to three hundred in words, in one long text. Reply with a JSON object."
        reply = self._send(self._build("Follow the instruction.", user, _TEXT, max_output=_OUTPUT_LIMIT))
        tokens = reply.usage.output if reply.usage else 0
        if tokens > 2 * _OUTPUT_LIMIT:
            return "failed", f"it is ignored: {tokens:,} tokens instead of at most {_OUTPUT_LIMIT}", ""
        if reply.finish == "length":
            return "ok", f"a reply stopped at {_OUTPUT_LIMIT} tokens, and its finish reason says so", ""
        return "note", f"the reply ended by itself before {_OUTPUT_LIMIT} tokens ({reply.finish})", ""

    def _check_streaming(self) -> tuple[Status, str, str]:
        pieces = list[str]()
        try:
            with stream_to(pieces.append):
                question = "Is nine larger than seven? Reply with a JSON object: `reasoning`, then `answer`."
                reply = self._send(self._build("Answer the question.", question, _WITH_REASONING))
        except (TryFailed, AccountFault) as error:
            return "note", f"it fails, so `watch` shows replies only when they are complete: {error.problem}", ""
        if reply.finish != "stop":
            return "note", f"a streamed reply ended with {reply.finish}", ""
        return "ok", f"a streamed reply is complete{'' if pieces else ', but came in one piece'}", ""

    def _check_logprobs(self) -> tuple[Status, str, str]:
        try:
            reply = self._send(self._build("Answer the question.", "Is nine larger than seven?", belief="logprobs"))
        except (TryFailed, AccountFault) as error:
            return "note", f"`belief: logprobs` does not work: {error.problem}: {error.quote}", ""
        yes = read_yes_probability(reply.received.raw, "answer")
        if yes is None:
            return "note", "none are returned, so `belief: logprobs` does not work", ""
        return "ok", f"returned: the probability of yes is {yes:.3f}", ""

    def _check_parallel_calls(self) -> tuple[Status, str, str]:
        numbers = range(PARALLEL_CALLS + 1)
        requests = [self._build("Answer the question.", f"Is {9 + n} larger than seven? JSON.") for n in numbers]
        start = time.monotonic()
        self._send(requests[0])
        alone = time.monotonic() - start
        start = time.monotonic()
        failures = [error for error in map_in_threads(self._try, requests[1:], PARALLEL_CALLS, "check") if error]
        together = time.monotonic() - start
        if failures:
            found = f"{len(failures)} of {PARALLEL_CALLS} calls failed: {failures[0]}"
            return "note", found, "lower `in_flight` (--in-flight)"
        return "ok", f"{PARALLEL_CALLS} at once took {together:.1f} s, one alone {alone:.1f} s", ""

    def _try(self, request: Request) -> TryFailed | AccountFault | None:
        try:
            self._send(request)
        except (TryFailed, AccountFault) as error:
            return error
        return None

    def _check_errors(self) -> tuple[Status, str, str]:
        try:
            reply = self._send(self._build("Answer the question.", "Is nine larger than seven?", model=_UNKNOWN_MODEL))
        except AccountFault as error:
            status: Status = "ok" if error.setting == "model" else "note"
            return status, f"an unknown model is reported: {error.quote or error.problem}", ""
        except TryFailed as error:
            return "note", f"a misspelt name would be retried like an outage: {error}", ""
        return "note", f"any model name is accepted; the reply names {one_line(reply.model or 'no model', 80)}", ""
