"""Products: clones of software that people work with, on which unmodified client libraries run.

    zendesk    a help desk: tickets, their rules and clocks

Each has tables, rules that know no HTTP, routes that call them, and a seed. `quintain product NAME` starts one.
"""
