"""Changes that change nothing anybody could see, each with its reason; `mutants.py` does not try them."""

from collections.abc import Mapping

EQUIVALENT: Mapping[str, str] = {}
