"""Namespaces where evictions keep failing: no more are asked for there, and none at all once all would fail.

A missing permission closes its namespace at the first refusal.  Other failures are counted: 20 in a row with one cause,
with nothing granted and nothing refused by a rule in between, close the namespaces that they are in.  Once five
namespaces are closed with nothing granted in between, the cycle asks for nothing more; for missing permissions, only if
nothing has been granted yet.
"""

import re
from collections.abc import Iterable

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Failed, Refused, Unknown, Verdict, refused

_IN_A_ROW = 20
_NAMESPACES = 5
#: What a role needs.
EVICTION_RULE = '{apiGroups: [""], resources: [pods/eviction], verbs: [create]}'

_ADMISSION = re.compile(r'(?:admission webhook|ValidatingAdmissionPolicy) ["\'][^"\']+["\']')
_NUMBER = re.compile(r"\d+")


class Closures:
    """What a cycle has learnt from its evictions that failed; `ended` says why none is worth asking for any more."""

    def __init__(self) -> None:
        self.ended = ""
        self._has_granted = False
        self._forbidden: set[str] = set()
        self._closed: dict[str, str] = {}  # by namespace, the failure that closed it, in the server's words
        self._closed_since_grant: set[str] = set()
        self._cause, self._row = "", list[str]()  # of the failures in a row, with the namespace of each
        self._ending: set[str] = set()
        self._otherwise_covered: set[str] = set()

    def owners_end(self, uids: Iterable[str]) -> None:
        """Evict no more pods of these owners: they are being deleted, and nothing would replace the pods."""
        self._ending |= set(uids)

    def budgets_changed(self, uids: Iterable[str]) -> None:
        """Evict these pods no more: other PDBs than at the snapshot select them, so what was decided may not hold."""
        self._otherwise_covered |= set(uids)

    def refusal(self, pod: Pod) -> Refused | None:
        """Return why a pod is not asked for though its strategy and its protections let it go; None if it may be."""
        owner = pod.controller
        if pod.namespace in self._forbidden:
            return refused(Code.NO_PERMISSION, namespace=pod.namespace)
        if failure := self._closed.get(pod.namespace):
            return refused(Code.CLOSED, failures=_IN_A_ROW, error=failure)
        if pod.uid in self._otherwise_covered:
            return refused(Code.PDB, message="other PodDisruptionBudgets select it than when the cluster was read")
        if owner and owner.uid in self._ending:
            words = f"its {owner.kind} {owner.name} is being deleted, and would not replace it"
            return refused(Code.BARE_PODS, message=words)
        return None

    def heard(self, pod: Pod, verdict: Verdict) -> None:
        """Learn from what became of a request."""
        if isinstance(verdict, Failed) and verdict.hopeless:
            self.ended = verdict.error
            return
        if isinstance(verdict, Failed) and verdict.forbidden:
            self._forbidden.add(pod.namespace)
            if len(self._forbidden) >= _NAMESPACES and not self._has_granted:
                self.ended = self._permission()
            return
        if verdict.granted:
            self._has_granted, self._closed_since_grant = True, set()
        self._count(pod, _failure(verdict))
        if len(self._closed_since_grant) >= _NAMESPACES:
            self.ended = self._given_up()

    def _count(self, pod: Pod, words: str) -> None:
        """Count a failure; one of another cause begins a row anew, and so does a verdict without a failure's words."""
        cause = _cause(words, pod)
        if cause != self._cause:
            self._cause, self._row = cause, []
        if not cause:
            return
        self._row.append(pod.namespace)
        if len(self._row) >= _IN_A_ROW:
            self._closed |= dict.fromkeys(sorted({*self._row}), words)
            self._closed_since_grant |= {*self._row}

    def notices(self) -> tuple[str, ...]:
        """Return what the reader of the report should know, and do."""
        permission = [self._permission()] if self._forbidden else []
        return (*permission, *([self._given_up()] if self._closed else []))

    def _permission(self) -> str:
        return (
            f"no permission to create pods/eviction in {_named(self._forbidden)}: "
            f"give the program's role the rule {EVICTION_RULE}; `rebalancer doctor` names all that it lacks"
        )

    def _given_up(self) -> str:
        words = next(reversed(self._closed.values()))
        return f"evictions were given up in {_named(self._closed)}, after {_IN_A_ROW} failures in a row: {words}"


def _failure(verdict: Verdict) -> str:
    """Return the words of a failure; empty for a grant, and for refusals that show that others may succeed."""
    match verdict:
        case Failed(words) | Unknown(words):
            return words
        case Refused(cause) if cause.code == Code.WEBHOOK:
            return str(cause.details.get("message", ""))
    return ""


def _cause(words: str, pod: Pod) -> str:
    """Return what failures of one cause have in common: the webhook, or the words without pod and numbers."""
    if not words:
        return ""
    if found := _ADMISSION.search(words):
        return found[0]
    for name in filter(None, (pod.name, pod.namespace, pod.uid)):
        words = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "_", words)
    return _NUMBER.sub("#", words)


def _named(namespaces: Iterable[str]) -> str:
    every = sorted(namespaces)
    return f"namespace {every[0]}" if len(every) == 1 else f"namespaces {', '.join(every)}"
