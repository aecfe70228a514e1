"""Columns hold what was put into them, whatever is missing in between."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.recommendation.samples import MISSING, ContainerOfPod, MeasuredContainers

TIMES = range(1_000_000, 1_000_000 + 900 * 300, 300)
NAME = ContainerOfPod("shop", "web-0", "app")
#: Where a piece begins, and its samples; None is a gap.
PIECES = st.lists(
    st.tuples(
        st.integers(0, 880),
        st.lists(st.none() | st.integers(0, 4000), min_size=1, max_size=20),
    ),
    max_size=6,
)


@given(PIECES)
def test_columns_have_every_sample_once_in_the_order_of_time(pieces):
    """Beside a dictionary, which is what columns stand for; pieces come in any order."""
    measured, model, taken = MeasuredContainers(TIMES), {}, set()
    for first, values in pieces:
        places = range(first, first + len(values))
        if taken.isdisjoint(places):
            taken.update(places)
            cpu = array("f", [MISSING if value is None else value / 1000 for value in values])
            memory = array("f", [MISSING if value is None else value * 4096 for value in values])
            measured.put(NAME, first, cpu, memory)
            model |= {place: value for place, value in zip(places, values, strict=True) if value is not None}
    series = measured.series.get(NAME)
    if not model:
        return

    columns = series.columns()

    assert len(series) == len(model)
    assert list(columns.times) == [TIMES[place] for place in sorted(model)]
    assert [round(each * 1000) for each in columns.cpu] == [model[place] for place in sorted(model)]
    assert list(columns.memory) == [model[place] * 4096 for place in sorted(model)]
    assert series.first_time() == columns.times[0]
    assert [place for place, total in enumerate(measured.totals) if total] == [
        place for place in sorted(model) if model[place]
    ]
