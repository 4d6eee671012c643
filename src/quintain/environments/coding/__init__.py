"""Programming in small repositories: repair reported defects, review changes, and complete functions."""
