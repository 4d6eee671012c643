"""Environments of other projects, played here. Each adapter is imported by name, none at import of the package."""
