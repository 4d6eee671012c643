"""What the desk is asked to do, one file per kind of job."""
