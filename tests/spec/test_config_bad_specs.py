"""Bad specs and what is said of them, read from bad_specs.txt: a title, the document, `=>`, the whole message."""

from pathlib import Path

import pytest

from hops.errors import SpecError
from hops.spec.load import loads

TABLE = Path(__file__).with_name("bad_specs.txt").read_text(encoding="utf-8")
BLOCKS = [block.split("\n", 1) for block in TABLE.split("\n### ")[1:]]
CASES = [pytest.param(*body.split("=>\n"), id=title) for title, body in BLOCKS]


def test_there_are_at_least_sixty_bad_specs_of_different_kinds():
    assert len({body for _, body in BLOCKS}) == len({title for title, _ in BLOCKS}) >= 60


@pytest.mark.parametrize(("document", "message"), CASES)
def test_a_bad_spec_is_refused_with_one_pointed_message_per_problem(document, message):
    with pytest.raises(SpecError) as caught:
        loads(document, name="bad.yaml")
    said, expected = str(caught.value).splitlines(), message.strip().splitlines()
    assert len(said) == len(expected), str(caught.value)
    for line, wanted in zip(said, expected, strict=True):
        if wanted.endswith(" ..."):  # what follows lists names that grow with the catalog
            assert line.startswith(wanted.removesuffix("..."))
        else:
            assert line == wanted
