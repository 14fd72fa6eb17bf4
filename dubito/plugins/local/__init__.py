"""Language models that run on this machine: `local:smollm2` and `local:PATH.gguf` (docs/local.md in this folder)."""
