"""A company's help desk on Zendesk's clone: a year of tickets, and eleven families of work."""
