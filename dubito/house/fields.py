"""Fields of a request's body, checked as they are read."""

from collections.abc import Iterator

from dubito.house.refusal import Refusal
from dubito.house.request import JsonBody


def tokens(text: str) -> int:
    """The house's tokens: four bytes of UTF-8 each, the last one maybe shorter."""
    return -(-len(text.encode(errors="surrogatepass")) // 4)


def first_tokens(text: str, count: int) -> str:
    """The beginning of the text that has so many tokens, at most."""
    return text.encode(errors="surrogatepass")[: 4 * count].decode(errors="ignore")


def texts(content: object, name: str) -> Iterator[str]:
    """The texts in a content: itself, or those of its blocks. Raises Refusal if it is neither text nor blocks."""
    if isinstance(content, str):
        yield content
        return
    for block in blocks(content, name):
        text = block.get("text")
        if isinstance(text, str):
            yield text


def blocks(value: object, name: str) -> list[JsonBody]:
    """The value as a list of objects. Raises Refusal if it is none."""
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise Refusal("bad_value", name=name, expected="a string or an array of objects")
    return value


def section(body: JsonBody, name: str) -> JsonBody:
    """An object in the body, empty if it is absent or null. Raises Refusal if it is something else."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refusal("bad_value", name=name, expected="an object")
    return value


def model_of(body: JsonBody) -> str:
    """The model that is asked for. Raises Refusal."""
    model = body.get("model")
    if model is None:
        raise Refusal("missing", name="model")
    if not isinstance(model, str):
        raise Refusal("bad_value", name="model", expected="a string")
    return model


def limit_of(body: JsonBody, name: str, least: int) -> int | None:
    """A limit on output tokens, None if the request has none. Raises Refusal."""
    limit = body.get(name)
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < least:
        raise Refusal("bad_value", name=name, expected=f"an integer greater than or equal to {least}")
    return limit
