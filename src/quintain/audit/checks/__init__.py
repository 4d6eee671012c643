"""Detectors: one file for each of the thirteen classes. `quintain.audit.kernel.check` shows how to write one."""
