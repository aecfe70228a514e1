"""The command `unmark`."""
