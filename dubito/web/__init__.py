"""Play in the browser: a local server where a person plays against bots."""
