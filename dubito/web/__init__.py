"""Play in the browser: a table on loopback, at which a person sits among bots."""
