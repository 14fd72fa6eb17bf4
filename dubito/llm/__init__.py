"""Ask models: a pipeline from request to reply, and a strict parser for answers."""
