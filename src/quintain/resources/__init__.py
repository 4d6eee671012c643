"""What a State may hold beside plain data: worlds of a size, or of a kind, that bytes in a message do not reach."""
