"""The help desk on Zendesk's clone."""
