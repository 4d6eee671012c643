"""The audit: what in an environment would teach a model the wrong thing."""
