"""Environments that come with the package."""
