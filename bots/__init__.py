"""The bots: `manual` answers with code, `llms` asks a model. Drop a file in, and it is found."""
