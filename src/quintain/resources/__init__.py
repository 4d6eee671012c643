"""Resources of a State: databases, files, sandboxes, schedules."""
