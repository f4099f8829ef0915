"""The pipeline and optimizer sections become a cost model on the devices that the stages are placed on."""

from collections.abc import Sequence
from dataclasses import replace

from hops.build.figures import Figures
from hops.build.reductions import grad_reduce, shard_parts, sharing_of, tied_reduction
from hops.cost.analytic import AnalyticCosts, balanced_partition
from hops.cost.base import CostModel
from hops.cost.data_parallel import NOTHING_HELD, Held, held_by, with_microbatches
from hops.cost.iteration_end import StepModel, optimizer_steps
from hops.cost.jittered import Jittered
from hops.cost.roofline import DeviceRates
from hops.cost.sliced import sliced
from hops.cost.stated import Backward, FusedBackward, MeasuredBackward, SplitBackward, StatedCosts, UnsplitBackward
from hops.cost.uneven import uneven
from hops.distributions import Constant, Distribution
from hops.model.memory import StageMemory
from hops.model.partition import Partition
from hops.model.workload import Workload
from hops.program.shape import Shape
from hops.spec.distributions import Form
from hops.spec.pipeline import StageTimes, per_stage
from hops.spec.spec import Spec


def build_costs(known: Figures, shape: Shape) -> CostModel:
    """Costs of every stage on the device of its rank, with the spec's jitter."""
    times, jitter = known.spec.pipeline.stage_times, known.spec.pipeline.jitter
    work = known.spec.pipeline.microbatch_work
    costs: CostModel = _analytic(known, shape) if times is None else _stated(known, times, shape)
    costs = costs if jitter is None else Jittered(inner=costs, factors=jitter.build())
    costs = uneven(costs, work.build() if isinstance(work, Form) else work)
    return sliced(costs, shape.slices, _attention_share(known))


def _attention_share(known: Figures) -> float:
    """What part of a microbatch's FLOPs the products of causal attention are; 0 where stage times are stated.

    They alone grow with the square of the sequence: half a sequence saves half of them and half of all. Model FLOPs
    count attention to all tokens, twice what is causal.
    """
    if known.work is None:
        return 0.0
    length, samples = known.work.batch.sequence_length, known.work.batch.samples
    whole, halves = (
        parts * known.work.model.model_flop(sequence_length=length // parts, samples=samples) for parts in (1, 2)
    )
    causal = whole - halves
    return causal / (whole - causal)


def _stated(known: Figures, times: StageTimes, shape: Shape) -> StatedCosts:
    stages, spec = shape.stages_per_copy, known.spec

    def each(value: int | tuple[int, ...]) -> tuple[int, ...]:
        return per_stage(value, stages) * shape.copies

    backward = list(_backwards(times, stages, spec.pipeline.split_overhead))
    kept_for_weight = list(per_stage(times.kept_for_weight, stages))
    if not spec.pipeline.first_stage_splits:  # W is the whole backward, and needs the whole activation
        backward[0], kept_for_weight[0] = UnsplitBackward(inner=backward[0]), each(times.activation)[0]
    memories = zip(
        each(times.weights),
        each(times.gradients),
        each(times.optimizer_state),
        each(times.activation),
        kept_for_weight * shape.copies,
        strict=True,
    )
    return StatedCosts(
        forward=tuple(form.build() for form in per_stage(times.forward, stages)) * shape.copies,
        backward=tuple(backward) * shape.copies,
        bytes_per_message=each(times.message),
        memories=tuple(
            StageMemory(
                weights_bytes=weights,
                gradients_bytes=gradients,
                optimizer_bytes=states,
                activation_bytes=activation,
                kept_for_weight_bytes=kept,
            )
            for weights, gradients, states, activation, kept in memories
        ),
        steps=StepModel(
            grad_reduce=_stated_reduce(known, times, shape),
            optimizer=_stated_update(spec, shape),
            host=Constant(value=host_gap(known, shape.num_ranks) if spec.optimizer.enabled else 0.0),
            synchronized=spec.optimizer.synchronized,
        ),
    )


def _backwards(times: StageTimes, stages: int, split_overhead: float) -> tuple[Backward, ...]:
    whole, inputs, weights = (
        None if form is None else [each.build() for each in per_stage(form, stages)]
        for form in (times.backward, times.input_backward, times.weight_backward)
    )
    if inputs is None or weights is None:
        assert whole is not None, "the spec's validation asks for one of them"
        return tuple(FusedBackward(whole=each, split_overhead=split_overhead) for each in whole)
    if whole is None:
        halves = zip(inputs, weights, strict=True)
        return tuple(SplitBackward(inputs=i, weights=w, split_overhead=split_overhead) for i, w in halves)
    together = zip(whole, inputs, weights, strict=True)
    return tuple(MeasuredBackward(whole=b, inputs=i, weights=w) for b, i, w in together)


def _stated_reduce(known: Figures, times: StageTimes, shape: Shape) -> tuple[Distribution, ...]:
    """The data-parallel reduction of the stated gradients; none where none are stated."""
    held = [NOTHING_HELD] * shape.num_ranks
    each = (per_stage(value, shape.stages_per_copy) * shape.copies for value in (times.gradients, times.weights))
    for rank, gradients, weights in zip(shape.rank_of_stage, *each, strict=True):
        held[rank] += Held(gradients=gradients, parameters=weights)
    if not known.spec.optimizer.enabled or not any(rank.gradients for rank in held):
        return ()
    return grad_reduce(known, shape, held, None)


def _stated_update(spec: Spec, shape: Shape) -> tuple[Distribution, ...]:
    update = spec.optimizer.update_time
    if update is None or not spec.optimizer.enabled:
        return ()
    return (update.build(),) * shape.num_ranks


def _analytic(known: Figures, shape: Shape) -> AnalyticCosts:
    work, pipeline = known.work, known.spec.pipeline
    assert work is not None, "a spec without stage times has a model"
    parts = partition(known, shape)
    costs = AnalyticCosts.of(
        work,
        parts,
        stage_rates(known, shape),
        split_overhead=pipeline.split_overhead,
        first_stage_splits=pipeline.first_stage_splits,
    )
    each = known.spec.optimizer.gradient_bytes
    held = [held_by(stage, gradient_bytes=each, element_bytes=work.how.element_bytes) for stage in costs.works]
    sharing, inner = sharing_of(known.spec), shard_parts(known.spec)
    exchanging = tuple(
        with_microbatches(stage, own, sharing, inner) for stage, own in zip(costs.works, held, strict=True)
    )
    if any(new is not old for new, old in zip(exchanging, costs.works, strict=True)):
        costs = replace(costs, works=exchanging)
    return replace(costs, steps=_steps(known, shape, work, costs, held))


def stage_rates(known: Figures, shape: Shape) -> list[DeviceRates]:
    """What the device of every stage computes in a second."""
    return [known.rates[rank] for rank in shape.rank_of_stage]


def partition(known: Figures, shape: Shape) -> Partition:
    """The layers of every stage, given its device's rates. The spec has a model."""
    work, stated = known.work, known.spec.pipeline.partition
    assert work is not None, "only a model is divided into stages"
    if isinstance(stated, tuple):
        return Partition(layers=stated, copies=shape.copies)
    if stated == "balanced":
        return balanced_partition(work, stage_rates(known, shape), copies=shape.copies)
    return replace(Partition.even(work.model.layers, shape.stages_per_copy), copies=shape.copies)


def _steps(known: Figures, shape: Shape, work: Workload, costs: AnalyticCosts, held: Sequence[Held]) -> StepModel:
    """The end of an iteration: reductions over the network, the optimizer over each device's own memory."""
    section = known.spec.optimizer
    if not section.enabled:
        return StepModel(synchronized=section.synchronized)
    own = [NOTHING_HELD] * shape.num_ranks
    for rank, each in zip(shape.rank_of_stage, held, strict=True):
        own[rank] += each
    ends = (known.devices[shape.rank_of_stage[stage]].id for stage in (0, -1))
    tied, stall = tied_reduction(known, *ends)
    return StepModel(
        tied_reduce=tied,
        tied_stall=stall,
        grad_reduce=grad_reduce(known, shape, own, costs),
        optimizer=_updates(known, shape, work, costs),
        host=Constant(value=host_gap(known, shape.num_ranks)),
        synchronized=section.synchronized,
    )


def host_gap(known: Figures, num_ranks: int) -> float:
    """Seconds between iterations of so many ranks: the stated gap, or the profile's."""
    stated, profile = known.spec.optimizer.host_gap, known.profile
    if stated is not None:
        return stated
    return 0.0 if profile is None else profile.gap.base_s + profile.gap.per_rank_s * (num_ranks - 1)


def _updates(known: Figures, shape: Shape, work: Workload, costs: AnalyticCosts) -> tuple[Distribution, ...]:
    """The optimizer step of every rank, over the part of the states that it holds."""
    if known.spec.optimizer.update_time is not None:
        return _stated_update(known.spec, shape)
    parameters, layers = [0.0] * shape.num_ranks, [0] * shape.num_ranks
    shards, expert_shards = work.states.optimizer, work.states.expert_optimizer
    for rank, stage in zip(shape.rank_of_stage, costs.works, strict=True):
        dense = stage.parameters - stage.expert_parameters
        parameters[rank] += dense + stage.expert_parameters * (shards / expert_shards)
        layers[rank] += stage.num_layers
    step_bytes = work.optimizer.step_bytes(work.how.element_bytes) / shards
    steps = optimizer_steps(parameters, layers, bytes_per_parameter=step_bytes, rates=known.rates)
    return tuple(Constant(value=each) for each in steps)
