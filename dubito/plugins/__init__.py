"""Plugins that ship with Dubito. Each can be deleted; the core never imports them."""
