"""What is remembered of objects: the same objects give the same result, equal ones do not, and few are kept."""

from hops.recent import Recent


def counting():
    made = []

    def make():
        made.append(object())
        return made[-1]

    return made, make


def test_the_same_objects_share_a_result_and_equal_ones_do_not():
    recent, (made, make) = Recent(4), counting()
    one, other = [1], [1]
    assert recent.of((one,), make) is recent.of((one,), make)
    assert recent.of((other,), make) is not recent.of((one,), make)
    assert len(made) == 2


def test_a_key_tells_results_of_the_same_objects_apart():
    recent, (made, make) = Recent(4), counting()
    one = []
    assert recent.of((one,), make, key=1) is not recent.of((one,), make, key=2)
    assert recent.of((one,), make, key=1) is made[0]


def test_the_one_that_was_used_longest_ago_is_forgotten():
    recent, (made, make) = Recent(2), counting()
    objects = [object() for _ in range(3)]
    first = recent.of((objects[0],), make)
    recent.of((objects[1],), make)
    assert recent.of((objects[0],), make) is first
    recent.of((objects[2],), make)
    recent.of((objects[1],), make)  # made anew: it was used before the first was used again
    assert len(made) == 4
    recent.of((objects[2],), make)
    assert len(made) == 4


def test_what_is_not_to_be_kept_is_made_every_time():
    recent, (made, make) = Recent(2), counting()
    one = object()
    for _ in range(2):
        recent.of((one,), make, keep=lambda _: False)
    assert len(made) == 2


def test_an_object_lives_as_long_as_its_result():
    """Else another one could come to lie at its address, and be taken for it."""
    recent = Recent(1000)
    results = {recent.of(([number],), lambda number=number: number) for number in range(500)}
    assert results == set(range(500))
