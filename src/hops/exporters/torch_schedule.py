"""For `torch.distributed.pipelining`: the program as a schedule CSV; and for HOPS itself, in its own text form."""

from hops.exporters.base import EXPORTERS, Exported, Exporter, Launchable
from hops.program.posting_check import check_postings, stuck_in_one_queue
from hops.program.pytorch_csv import communicating_csv, compute_csv
from hops.program.streams import with_postings

COMPUTE_ONLY = "schedule.csv"
COMMUNICATING = "schedule_with_communication.csv"
_COMPUTE_ONLY_NOTE = f"{COMPUTE_ONLY}: load with _PipelineScheduleRuntime._load_csv(file); PyTorch adds communication"
_COMMUNICATING_NOTE = (
    f"{COMMUNICATING}: load with format='compute_comms'; receives are posted one action early, and all stages stay "
    "gathered under FSDP"
)


@EXPORTERS.register("torch")
class TorchSchedule(Exporter):
    """Both kinds of CSV. What PyTorch calls stages, ranks and microbatches is what HOPS calls so."""

    def export(self, plan: Launchable) -> Exported:
        program = plan.program
        streams = with_postings(program)
        check_postings(program, streams)
        stuck = stuck_in_one_queue(program, streams)
        return Exported(
            files={COMPUTE_ONLY: compute_csv(program), COMMUNICATING: communicating_csv(program)},
            notes=(_COMPUTE_ONLY_NOTE, _COMMUNICATING_NOTE, *([_queue_note(stuck)] if stuck else [])),
        )


def _queue_note(stuck: str) -> str:
    return (
        f"{COMMUNICATING} needs a transport that keeps the two directions between two ranks apart (gloo, MPI, UCX): "
        f"on NCCL, where they share a queue, it would wait for ever ({stuck}): take {COMPUTE_ONLY} there"
    )


@EXPORTERS.register("program")
class ProgramText(Exporter):
    """The program in HOPS's own text form, which `schedule: {name: program, file: ...}` reads."""

    def export(self, plan: Launchable) -> Exported:
        return Exported(files={"program.txt": f"# {plan.name}\n{plan.program}\n"})
