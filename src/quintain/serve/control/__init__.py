"""The control plane: environments and episodes as a JSON API under `/v1`, for trainers and operators.

app                  the Starlette application
table, routes        the table of routes, and its rows
discovery, episodes  handlers: environments and tasks, and episodes
bodies, answers      types of requests and responses
views                episodes in the words of the control plane
once                 answers to a repeated `Idempotency-Key`
openapi              the OpenAPI document
metrics              metrics for Prometheus
"""
