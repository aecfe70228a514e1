"""What stands over from run to run, shown and changed by hand: the memory, pauses, the breaker, and marks on nodes."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from rebalancer.errors import ClusterError, MarksLeft, NoCredentials, Unreachable, UsageError
from rebalancer.kube.answers import decoded
from rebalancer.kube.client import path_of
from rebalancer.kube.lists import path_within, read_list
from rebalancer.kube.marks import HoldMark, HoldMarks, KindOfMark, Mark, SteeringMarks, any_mark, expired
from rebalancer.kube.node_marks import changed_entries, clear_leftovers
from rebalancer.kube.pressure_marks import PressureMark, PressureMarks
from rebalancer.kube.wire.pages import PATHS, Items
from rebalancer.kube.wire.scheduler_inputs import OWNERS
from rebalancer.kube.wire.shared_fields import VersionedMetadata
from rebalancer.marking.rules import Signs, read_sign
from rebalancer.memory.document import Memory
from rebalancer.policy.moving import HOLD_KEY, Steering
from rebalancer.policy.windows import Pause, pause_in, paused_in_words
from rebalancer.report.document import timestamp
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import open_cluster
from rebalancer.run.memory import BREAKER_NOTE, PAUSE_KEY, PAUSE_NOTE, MemorySource, Recalled, paused
from rebalancer.run.options import MARKING_LEASE, ClientOptions, LeaseOptions
from rebalancer.run.steered import record_of

_TRIES = 5


class _Paused(NamedTuple):
    """What is paused, in words, and kind and path of the object that is annotated; empty for all runs."""

    words: str
    kind: str = ""
    path: str = ""


def _part(namespace: str | None, owner: str | None) -> _Paused:
    """Return the part that is a namespace, or one owner in it as `Kind/name`; without either it is everything."""
    if namespace is None and owner is None:
        return _Paused("all")
    if not namespace:  # a variable of a script, perhaps, that is not set
        raise UsageError("--namespace names one; without it, and without --owner, all runs are meant")
    if owner is None:
        return _Paused(f"namespace {namespace}", "Namespace", PATHS["Namespace"] + path_of(namespace))
    kind, _, name = owner.partition("/")
    if kind not in OWNERS or not name:
        kinds = f"{', '.join(OWNERS[:-1])} or {OWNERS[-1]}"
        raise UsageError(f"--owner {owner!r} is not KIND/NAME of a {kinds}")
    return _Paused(f"{owner} in namespace {namespace}", kind, path_within(kind, namespace) + path_of(name))


class _Noted(msgspec.Struct):
    """What carries a pause: a namespace, or an owner of pods."""

    metadata: VersionedMetadata


class Standing:
    """Reads and writes the memory, pauses and the breaker; `lease` names the Lease, and with it the ConfigMap."""

    def __init__(self, client: ClientOptions, lease: LeaseOptions) -> None:
        self._client = open_cluster(client)
        self._source = MemorySource.of(self._client, lease)
        self._now = datetime.now(UTC)

    def document(self) -> dict[str, Any]:
        """Return the memory as JSON has it, with a pause of all runs."""
        found = self._recalled()
        document: dict[str, Any] = msgspec.to_builtins(found.known(self._now))
        return document | {"known": found.memory is not None, "paused": found.paused}

    def clear(self, owner: str | None) -> str:
        """Forget everything, or one owner (`namespace/Kind/name`)."""
        if owner is None:
            self._change(lambda _: Memory(since=self._now))
            return "the memory is empty; for half an hour balance strategies move one pod of each owner in a cycle"
        namespace, _, name = owner.partition("/")

        def forgetting(memory: Memory) -> Memory:
            moves = tuple(each for each in memory.moves if each.key != (namespace, name))
            return replace(memory, moves=moves, stops=tuple(x for x in memory.stops if x.key != (namespace, name)))

        before = self._recalled().memory
        if before is None or forgetting(before) == before:
            raise UsageError(f"nothing is remembered of {owner!r}; owners are named like shop/Deployment/web")
        self._change(forgetting)
        return f"nothing is remembered of {owner} any more"

    def reset(self) -> str:
        """Close the breaker, and let no owner be stopped."""
        self._change(lambda memory: replace(memory, breaker=None, stops=(), counted_from=self._now))
        self._source.note(BREAKER_NOTE, "")
        return "the breaker is closed, and no owner is stopped"

    def pause(self, namespace: str | None, owner: str | None, lasting: timedelta | None, reason: str) -> str:
        """Pause for so long, or until it is ended; return what was done, in words, as the others do."""
        if lasting is not None and not lasting:
            raise UsageError("--for is more than 0; without it the pause lasts until `rebalancer resume`")
        part, pause = _part(namespace, owner), Pause(self._now + lasting if lasting else None, reason)
        self._set_pause(part, pause.text())
        return paused_in_words(pause, part.words)

    def resume(self, namespace: str | None, owner: str | None) -> str:
        """End a pause."""
        part = _part(namespace, owner)
        self._set_pause(part, "")
        return f"{part.words} is not paused any more"

    def status(self) -> Iterator[str]:
        """Yield what stands in the way of runs, and what is remembered, in words."""
        found = self._source.read(self._now)
        memory = found.known(self._now)
        if found.problem:
            yield found.problem
        yield found.paused or "no pause of all runs"
        yield from self._pauses()
        if breaker := memory.breaker:
            until = f"is open until {timestamp(breaker.until)}"
            yield f"the breaker {until if breaker.until > self._now else 'lets one move be tried'}: {breaker.why}"
        else:
            yield "the breaker is closed"
        for each in memory.stops:
            if each.until > self._now:
                yield f"{each.namespace}/{each.owner} is stopped until {timestamp(each.until)}: {each.why}"
        told = f"{len(memory.moves)} moves are remembered since {timestamp(memory.since)}; {memory.undone} were undone"
        yield told if found.memory else "nothing is remembered"

    def _pauses(self) -> Iterator[str]:
        for kind in ("Namespace", *OWNERS):
            try:
                found = read_list(self._client, PATHS[kind], partial(Items, kind, _Noted, lambda each: each.metadata))
            except (Unreachable, NoCredentials):
                raise
            except ClusterError as error:
                yield f"what is paused is not known in full: {error}"
                continue
            for each in found.items:
                part = (each.name, None) if kind == "Namespace" else (each.key[0], f"{kind}/{each.name}")
                if pause := pause_in((each.annotations or {}).get(PAUSE_NOTE, ""), self._now):
                    yield paused_in_words(pause, _part(*part).words)

    def _recalled(self) -> Recalled:
        found = self._source.read(self._now)
        if found.problem:
            raise ClusterError(found.problem)
        return found

    def _change(self, change: Callable[[Memory], Memory]) -> None:
        self._source.change(self._now, lambda found: change(found or Memory(since=self._now)))

    def _set_pause(self, part: _Paused, text: str) -> None:
        if part.path:
            self._annotate(part, text)
            return
        for _ in range(_TRIES):
            if self._source.map.write(self._source.map.read(), {PAUSE_KEY: text or None}):
                break
        self._source.note(PAUSE_NOTE, text)
        data, notes = self._source.map.read().data, self._source.notes()
        if bool(paused(data, notes, self._now)) != bool(text):
            raise ClusterError("the pause was not written: others write to it all the time")

    def _annotate(self, part: _Paused, text: str) -> None:
        for _ in range(_TRIES):
            before = decoded(self._client.get(part.path), _Noted, part.path, f"a {part.kind}").metadata
            changes = changed_entries("/metadata/annotations", before.annotations, {PAUSE_NOTE: text or None})
            if not changes:
                return
            version = {"op": "test", "path": "/metadata/resourceVersion", "value": before.resource_version}
            answer = self._client.write("PATCH", part.path, msgspec.json.encode([version, *changes]))
            if not answer.is_outdated:
                answer.confirm(part.kind)
                return
        raise ClusterError(f"others write to {part.words} all the time")


def unmark(
    client: ClientOptions,
    lease: LeaseOptions,
    key: str,
    sign: str,
    interruption: Interruption,
    *,
    everything: bool,
    dry_run: bool,
) -> tuple[tuple[str, ...], int]:
    """Take off the marks that have expired, or all, also those that a run may need; return lines and the exit code.

    The Lease is that of the runs, `key` of steering's taints; `sign` is KEY or KEY=VALUE of marks of pressure.
    """
    try:
        key, pressure = Steering(key=key).key, read_sign(sign)
    except ValidationError as error:
        raise UsageError(f"--key: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    except ValueError as error:
        raise UsageError(f"--mark: {error}") from None
    signs = Signs(label=pressure, taint=pressure)
    cluster = open_cluster(client)
    interruption.ending = cluster.ending
    # The runs that may have left something, and the labels and taints that `rebalancer mark` has set.
    steering = SteeringMarks.of(key, record_of(cluster, lease).read())
    of_marking = LeaseOptions(resource_name=MARKING_LEASE, resource_namespace=lease.resource_namespace)
    earlier = record_of(cluster, of_marking).signs() | record_of(cluster, lease).signs()
    kinds: list[tuple[KindOfMark[Any], str, str]] = [
        (steering, "", "that run may be at work"),
        (HoldMarks(), "held empty", "it has not expired"),
        (PressureMarks(signs, earlier), "pressure", "it has not expired"),
    ]
    lines, claims, exit_code = list[str](), list[str](), 0
    for kind, what, why in kinds:
        found = clear_leftovers(cluster, kind, any_mark if everything else expired, dry_run=dry_run)
        for node in found.over:
            problem = found.problems.get(node.name)
            done = "would be unmarked" if dry_run else f"stays marked: {problem}" if problem else "unmarked"
            lines.append(f"node {node.name} ({_whose(kind.read(node), what)}): {done}")
        stays = f"stays, since {why} (--all takes it off)"
        lines += [f"node {node.name} ({_whose(kind.read(node), what)}): {stays}" for node in found.in_use]
        claims += found.claims
        exit_code = MarksLeft.exit_code if found.problems else exit_code
    told = (*lines, *claims) or (f"no node carries {steering.first}, {HOLD_KEY} or {signs.label}",)
    return told, exit_code


def _whose(mark: Mark | HoldMark | PressureMark | None, what: str) -> str:
    if mark is None:
        return f"{what}, nobody's" if what else "nobody's"
    by = f"{what} by run {mark.run}".removeprefix(" by ")
    whose = f"{what}: {', '.join(mark.rules)}" if isinstance(mark, PressureMark) else by
    return f"{whose}, until {timestamp(mark.expires)}"
