"""A sandbox for untrusted programs. It limits what they can access, use and leave behind."""
