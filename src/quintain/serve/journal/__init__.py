"""The journal: what is asked is written before it is done, so that a killed server's episodes go on."""
