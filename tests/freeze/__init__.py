"""What Dubito was before other games moved in beside it: digests, and files that its users keep."""
