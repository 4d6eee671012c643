"""The detectors: one file for each of the thirteen classes. See `quintain.audit.check` for how one is written."""
