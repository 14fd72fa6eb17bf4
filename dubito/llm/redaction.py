"""Remove an account's key, organisation ids and project ids from everything that a server echoes."""

import re
from html import escape
from typing import Final

_MIN_SECRET: Final = 8  # characters; shorter keys are not secret
_IDS: Final = r"org-[A-Za-z0-9]{16,}|proj_[A-Za-z0-9]{16,}"  # of organisations and projects
# What servers write of a key: its ends, or its hash. A proxy may also show the key of the provider behind it.
_KEY_PARTS: Final = (
    r"(?<![\w-])[\w-]{0,100}\*{3,}[\w*-]*|\bsk-[\w-]*\.{3}\w*|\b[0-9a-f]{64}\b|\b(?:sk-|gsk_|xai-|hf_|AIza)[\w-]{16,}"
    r"|(?<=[Bb]earer )[\w.~+/=-]{8,}"
)
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # form of such ids in one provider's errors


class Redaction:
    """Removes one account's key from the texts that its server sends."""

    def __init__(self, key: str) -> None:
        pattern = key_pattern(key)
        self._in_errors = re.compile(f"{pattern}|{_IDS}|{_UUID}|{_KEY_PARTS}")
        self._in_replies = re.compile(f"{pattern}|{_IDS}" if len(key) >= _MIN_SECRET else _IDS)

    def error(self, text: str) -> str:
        return self._in_errors.sub("***", text)

    def reply(self, text: str) -> str:
        return self._in_replies.sub("***", text)


def key_pattern(key: str) -> str:
    """Return a pattern for a key as it is, or as JSON, HTML or a URL encode its characters."""
    slash = r"(?:\\(?:u005[cC])?)"
    pieces = []
    # Each level of JSON doubles a run of backslashes.
    for part in re.findall(r"\\+|[^\\]", key):
        code = ord(part[0])
        coded = rf"{slash}{{1,4}}u(?i:{code:04x})|%(?i:{code:02x})|&\#0*{code};|&\#[xX]0*(?i:{code:x});"
        if part[0] == "\\":
            forms = [f"{slash}{{{len(part) * times}}}" for times in (8, 4, 2, 1)]
            pieces.append(f"(?:{'|'.join(forms)}|(?:{coded}){{{len(part)}}})")
        else:
            named = f"|{re.escape(escape(part))}" if escape(part) != part else ""
            plain = f"{slash}{{0,7}}{part}" if part in "\"'/" else re.escape(part)
            pieces.append(f"(?:{plain}|{coded}{named})")
    return "".join(pieces)
