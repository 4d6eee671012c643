"""The repository work with one planted bug, one module for each class; see `quintain.environments.twins`."""
