"""Layers stand where Megatron-LM puts them: rows of its own rules, and what it refuses."""

import pytest

from hops.errors import UsageError
from hops.importers.megatron.cut import Cut, cut_layers, expand_layout


def stages(num_layers, ranks, **flags):
    return list(cut_layers(Cut(num_layers=num_layers, ranks=ranks, **flags), where="launch.sh:3"))


@pytest.mark.parametrize(
    ("num_layers", "ranks", "flags", "layers"),
    [
        (32, 4, {}, [8, 8, 8, 8]),
        (12, 1, {}, [12]),
        (30, 4, {"embedding": True, "loss": True}, [7, 8, 8, 7]),
        (31, 4, {"loss": True}, [8, 8, 8, 7]),
        (30, 4, {"chunks": 2, "embedding": True, "loss": True}, [3, 4, 4, 4, 4, 4, 4, 3]),
        (61, 4, {"first": 16, "last": 13}, [16, 16, 16, 13]),
        (61, 8, {"last": 5}, [8] * 7 + [5]),
        (8, 2, {"first": 3}, [3, 5]),
        (40, 4, {"chunks": 2, "first": 8, "last": 8}, [4, 6, 6, 4, 4, 6, 6, 4]),
        # virtual stages: first and last count all chunks of a rank together
        (24, 4, {"chunks": 2, "first": 6, "last": 6}, [3] * 8),
        (32, 4, {"chunks": 2, "first": 4, "last": 4}, [2, 6, 6, 2, 2, 6, 6, 2]),
        (24, 4, {"chunks": 3, "first": 3, "last": 3}, [1, 3, 3, 1] * 3),
        # stages without layers
        (6, 4, {"chunks": 2, "embedding": True, "loss": True}, [0, 1, 1, 1, 1, 1, 1, 0]),
        (12, 4, {"embedding_alone": True}, [0, 4, 4, 4]),
        (2, 4, {"embedding": True, "loss": True}, [0, 1, 1, 0]),
        # layers per chunk
        (24, 4, {"layers_per_chunk": 3}, [3] * 8),
        (30, 4, {"layers_per_chunk": 4, "embedding": True, "loss": True}, [3, 4, 4, 4, 4, 4, 4, 3]),
        # layouts
        (32, 4, {"layout": "Et*7|t*9|t*9|t*7L"}, [7, 9, 9, 7]),
        (10, 4, {"layout": "Ett|ttt|ttt|ttL"}, [2, 3, 3, 2]),
        (6, 4, {"layout": "E|(t|)*6L"}, [0, 1, 1, 1, 1, 1, 1, 0]),
        (80, 8, {"layout": "Et*2|(t*2|)*34,t*3|(t*2|)*3,tL"}, [2] * 35 + [3, 2, 2, 2, 1]),
    ],
)
def test_layers_stand_where_megatron_puts_them(num_layers, ranks, flags, layers):
    assert stages(num_layers, ranks, **flags) == layers
    assert sum(layers) == num_layers


def test_a_layout_is_expanded_groups_first():
    assert expand_layout("Et*3|(tt|)*6,m|L", where="") == ["Ettt", *["tt"] * 6, "m", "L"]
    assert expand_layout("E (t,t|)*2 L", where="") == ["Ett", "tt", "L"]


@pytest.mark.parametrize(
    ("num_layers", "ranks", "flags", "message"),
    [
        (30, 4, {}, "30 layers cannot be cut evenly over 4 stages (first even, last even)"),
        (8, 4, {"first": 9}, "8 layers cannot be cut evenly over 4 stages (first 9, last even)"),
        (8, 2, {"first": 3, "last": 3}, "8 layers cannot be cut evenly over 2 stages (first 3, last 3)"),
        (8, 1, {"first": 4, "last": 4}, "cannot be cut evenly over 1 stages"),
        (
            24,
            4,
            {"chunks": 4},
            "24 layers cannot be cut evenly over 16 stages: a rank's 6 layers are no multiple of its 4",
        ),
        (24, 4, {"chunks": 2, "first": 5, "last": 5}, "a rank's 5 layers are no multiple of its 2 chunks"),
        (24, 4, {"chunks": 2, "layers_per_chunk": 3}, "got several of --num-virtual-stages-per-pipeline-rank"),
        (24, 4, {"layers_per_chunk": 5}, "--num-layers 24 is not a multiple of 4 ranks x"),
        (24, 4, {"layers_per_chunk": 3, "first": 6}, "state --num-virtual-stages-per-pipeline-rank instead"),
        (30, 4, {"embedding": True, "first": 6}, "expected one or the other"),
        (13, 4, {"embedding_alone": True}, "13 layers cannot be cut evenly over 3 stages behind the embedding"),
        (12, 4, {"embedding_alone": True, "chunks": 2}, "remove them"),
        (9, 4, {"layout": "Ett|ttt|ttt|ttL"}, "has 10 layers, expected the 9 of --num-layers"),
        (10, 3, {"layout": "Ett|ttt|ttt|ttL"}, "4 stages are no multiple of 3 pipeline ranks"),
        (10, 4, {"layout": "ttE|ttt|ttt|ttL"}, "expected E first, L last, each once"),
        (10, 4, {"layout": "Ett|ttt|ttt|tt"}, "expected E first, L last, each once"),
        (10, 4, {"layout": "Ett|ttt|ttt|ttmL"}, "multi-token prediction (m) is not modelled yet"),
        (10, 4, {"layout": "Ett|ttx|ttt|ttL"}, "got 'x', expected E, t, m, L"),
        (10, 4, {"layout": "E((t|)*2)*3L"}, "parentheses are nested or not closed"),
        (10, 4, {"layout": "E(t|*2L"}, "parentheses are nested or not closed"),
        (10, 4, {"layout": "E(t|)*999999L"}, "is longer than 100000 stages"),
        (10, 4, {"layout": "Ett|ttt|ttt|ttL", "first": 2}, "says the whole cut; remove --decoder-..."),
    ],
)
def test_what_megatron_refuses_is_refused_with_its_place(num_layers, ranks, flags, message):
    with pytest.raises(UsageError) as error:
        stages(num_layers, ranks, **flags)
    assert message in str(error.value)
    assert str(error.value).startswith("launch.sh:3: ")
