"""Reads variables: the environment, `.env` files and the table of what there is to set. Both sides use it."""
