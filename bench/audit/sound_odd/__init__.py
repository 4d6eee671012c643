"""Sound environments of four authors, opened only after the laws of the audit are frozen."""
