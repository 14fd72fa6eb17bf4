"""A sandbox for untrusted programs that limits what they can access, use and leave behind."""
