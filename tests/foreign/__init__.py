"""Providers as they are described in their documents, played by a server that knows nothing of our client."""
