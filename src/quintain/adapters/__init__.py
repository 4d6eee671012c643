"""Environments of other projects, played here. Each adapter is imported by name, none at import of the package."""

__framework__ = True  # Traces must replay in later releases, so fingerprints leave out the code of the adapters here.
