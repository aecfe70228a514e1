"""Foreign text for people: nothing in it reaches a terminal or a log as anything but visible characters.

Whoever owns a pod, a webhook or a server writes names, labels, reasons and messages.  Control characters could rewrite
a terminal, a line separator could forge a line of a log, and marks of writing direction could swap what is read.
"""

from rebalancer.foreign.address import without_userinfo

#: Characters of one text that a table or a log shows.
LONGEST = 10_000


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return the text on one line: what is not printable as an escape (`\x1b`, `\u2028`), URLs without userinfo."""
    clean = without_userinfo(text)
    shown = clean if len(clean) <= longest else f"{clean[:longest]}…"
    return shown if shown.isprintable() else "".join(map(_visible, shown))


def printable_lines(text: str, longest: int = LONGEST) -> str:
    """Return a text of our own whose lines may hold foreign ones: each line as `printable` does."""
    return "\n".join(printable(line, longest) for line in text.split("\n"))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
