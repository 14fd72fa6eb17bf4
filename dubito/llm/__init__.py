"""Ask models: one pipeline from request to reply, and a strict parser for the answer."""
