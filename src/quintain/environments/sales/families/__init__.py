"""Kinds of jobs of the desk, one file each."""
