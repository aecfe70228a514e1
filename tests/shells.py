"""The shells whose completion is tested; a machine may lack some of them."""

import shutil


def missing(shell: str) -> str:
    """Why a shell cannot be tested; empty where it is there."""
    return "" if shutil.which(shell) else f"there is no {shell}: apt-get install {shell}"
