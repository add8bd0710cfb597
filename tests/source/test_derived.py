from __future__ import annotations

import gc

from priorshift.source import derived


class Thing:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)


def counted():
    calls = []

    @derived.per_source
    def double(source):
        calls.append(source.value)
        return 2 * source.value

    return double, calls


def test_once_for_each_object():
    double, calls = counted()
    one, other = Thing(1), Thing(2)
    assert [double(one), double(other), double(one), double(other)] == [2, 4, 2, 4]
    assert calls == [1, 2]


def test_an_identity_used_twice_is_no_mix_up(monkeypatch):
    monkeypatch.setattr(derived, "id", lambda _: 7, raising=False)
    double, _ = counted()
    one, other = Thing(1), Thing(2)
    assert [double(one), double(other), double(one)] == [2, 4, 2]


def test_nothing_is_kept_of_dead_objects():
    double, _ = counted()
    kept = double.__closure__[1].cell_contents
    assert isinstance(kept, dict)
    things = [Thing(i) for i in range(20)]
    for thing in things:
        double(thing)
    assert len(kept) == 20
    del things, thing
    gc.collect()
    assert not kept


def test_objects_without_weak_references_work_too():
    double, calls = counted()
    thing = Slotted()
    thing.value = 3
    assert [double(thing), double(thing)] == [6, 6]
    assert calls == [3, 3]
