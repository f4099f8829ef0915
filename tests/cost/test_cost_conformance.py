"""Our cost models pass the suite that outsiders' cost models inherit."""

from hops.cost.analytic import AnalyticCosts
from hops.cost.iteration_end import StepModel
from hops.cost.jittered import Jittered
from hops.cost.roofline import DeviceRates
from hops.cost.stated import SplitBackward, StatedCosts
from hops.cost.table import TableCosts
from hops.distributions import LogNormal, Normal
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.memory import StageMemory
from hops.model.partition import Partition
from hops.model.transformer import get_model
from hops.model.workload import Workload
from hops.testing.costs import CostModelConformance


class TestTableCosts(CostModelConformance):
    def make(self, num_stages):
        return TableCosts.uniform(num_stages, bytes_per_message=7)


class TestAnalyticCosts(CostModelConformance):
    def make(self, num_stages):
        return AnalyticCosts.of(
            Workload(
                model=get_model("gpt2"),
                batch=Microbatch(sequence_length=256),
                how=Implementation(recompute="selective"),
                optimizer=Optimizer.named("adam", element_bytes=2),
            ),
            Partition.even(12, num_stages),
            [DeviceRates(peak_flop_per_s=1e14, memory_bandwidth=1e12)] * num_stages,
            steps=StepModel(host=Normal(mean=1.0, std=0.1)),
        )


class TestStatedCosts(CostModelConformance):
    def make(self, num_stages):
        time = LogNormal.with_cv(mean=1.0, cv=0.3)
        return StatedCosts(
            forward=(time,) * num_stages,
            backward=(SplitBackward(inputs=time, weights=time, split_overhead=1.1),) * num_stages,
            bytes_per_message=(5,) * num_stages,
            memories=(StageMemory(activation_bytes=2, kept_for_weight_bytes=1),) * num_stages,
        )


class TestJittered(CostModelConformance):
    def make(self, num_stages):
        return Jittered(inner=TableCosts.uniform(num_stages), factors=Normal(mean=1.0, std=0.2))
