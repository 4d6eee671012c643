"""Sound environments: the audit must report no error in any of them."""
