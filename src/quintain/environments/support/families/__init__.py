"""The kinds of trouble. Each module has, for each level, the ways in which its trouble comes."""
