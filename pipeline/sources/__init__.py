"""One file per kind of source, and what they share."""
