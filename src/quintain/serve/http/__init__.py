"""The HTTP side of serving: the application, its server, authentication, limits and metrics."""
