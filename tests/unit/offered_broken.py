"""A module that fails as it is imported."""

raise RuntimeError("no licence found")
