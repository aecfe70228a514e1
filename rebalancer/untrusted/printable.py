"""Text that others wrote, made safe to show: only visible characters reach a terminal or a log.

The owners of pods, webhooks and servers choose names, labels, reasons and messages.  Control characters could rewrite
a terminal, a line separator could forge a line of a log, and marks of writing direction could reorder the text.
"""

from rebalancer.untrusted.address import without_userinfo

#: A table or a log shows at most so many characters of one text.
LONGEST = 10_000


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return the text on one line: unprintable characters as escapes (`\x1b`, `\u2028`), URLs without userinfo."""
    clean = without_userinfo(text)
    shown = clean if len(clean) <= longest else f"{clean[:longest]}…"
    return shown if shown.isprintable() else "".join(map(_visible, shown))


def printable_lines(text: str, longest: int = LONGEST) -> str:
    """Apply `printable` to each line of a text of our own, which may contain text that others wrote."""
    return "\n".join(printable(line, longest) for line in text.split("\n"))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
