"""Tests against servers that follow the providers' documents, written independently of the client."""
