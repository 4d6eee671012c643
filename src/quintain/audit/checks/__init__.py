"""Detectors: one file for each of the thirteen classes. `quintain.audit.check` shows how to write one."""
