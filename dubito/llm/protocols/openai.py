"""What the protocols of OpenAI have in common."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dubito.llm.protocols.wire import WireFormat, as_mapping, parse_count, parse_usage
from dubito.llm.request import Usage

if TYPE_CHECKING:
    from httpx2 import Client


class OpenAIFormat(WireFormat):
    provider: ClassVar[str] = "openai"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    address: ClassVar[str] = "https://api.openai.com/v1"
    address_variable: ClassVar[str] = "OPENAI_BASE_URL"
    token_names: ClassVar[tuple[str, str]] = ("input", "output")  # in the names of token counts

    @staticmethod
    def import_sdk() -> tuple[Any, Callable[..., "Client"]]:
        import openai

        return openai, openai.DefaultHttpx2Client

    @staticmethod
    def build_client(sdk: Any, **arguments: Any) -> Any:
        headers = {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit()}
        return sdk.OpenAI(**arguments, default_headers=headers)

    @classmethod
    def parse_usage(cls, body: Mapping[str, Any]) -> Usage | None:
        """Parse token counts. OpenAI includes cached tokens in the input.

        A missing or null count is 0, as on many servers. If there are more cached tokens than input tokens, the server
        counts them separately.
        """
        counts, (input_name, output_name) = as_mapping(body.get("usage")), cls.token_names
        inputs, outputs = (as_mapping(counts.get(f"{name}_tokens_details")) for name in cls.token_names)
        cache_write = inputs.get("cache_write_tokens") or 0
        if type(cache_write) is int:
            details = as_mapping(inputs.get("cache_write_tokens_details"))
            cache_write = max(cache_write, sum(map(parse_count, details.values())))
        usage = parse_usage(
            counts.get(f"{input_name}_tokens"),
            inputs.get("cached_tokens") or 0,
            cache_write,
            counts.get(f"{output_name}_tokens"),
            outputs.get("reasoning_tokens") or 0,
            counts.get("total_tokens"),
        )
        cached = usage.cached + usage.cache_write if usage else 0
        return replace(usage, input=usage.input + cached) if usage and cached > usage.input else usage


def count_long_writes(details: Any) -> int:
    return parse_count(as_mapping(as_mapping(details).get("cache_write_tokens_details")).get("ttl_12h_tokens"))
