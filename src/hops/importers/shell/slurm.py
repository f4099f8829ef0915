"""`#SBATCH` lines of a script: the variables that Slurm sets from them (slurm.schedmd.com/sbatch.html)."""

import re

_HEADER = re.compile(r"^#SBATCH[ \t]+(.*?)[ \t]*(?:[ \t]#.*)?$", re.MULTILINE)
_SHORT = {"-N": "--nodes", "-n": "--ntasks", "-G": "--gpus"}
_GPUS = re.compile(r"^(?:gpu:)?(?:(?P<kind>[A-Za-z][\w.-]*)[:=])?(?P<count>\d{1,6})$")


def slurm_options(words: list[str]) -> dict[str, str]:
    """Options of sbatch or srun among words, by long name without dashes: nodes, ntasks-per-node, gres, ..."""
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        short = re.fullmatch(r"(-[NnG])(=?)(\S*)", word)
        if short:
            found[_SHORT[short[1]][2:]] = short[3] or following
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found[name] = value if equals else following
    return found


def gpus_of(text: str) -> tuple[str, int] | None:
    """Type ("" if not said) and number of `gpu:h100:8`, `h100:8`, `8`."""
    match = _GPUS.fullmatch(text.split(",", maxsplit=1)[0].split("(", maxsplit=1)[0])
    return (match["kind"] or "", int(match["count"])) if match else None


def slurm_variables(text: str) -> dict[str, str]:
    """SLURM_NNODES and its kin, as far as the header says."""
    words = [word for line in _HEADER.findall(text) for word in line.split()]
    options = slurm_options(words)
    if not words:
        return {}
    found: dict[str, str] = {"SLURM_JOB_NAME": options.get("job-name", "sbatch")}
    nodes = options.get("nodes", _nodes(options)).split("-")[-1]
    if nodes.isdigit():
        found |= {"SLURM_NNODES": nodes, "SLURM_JOB_NUM_NODES": nodes}
    per_node = options.get("ntasks-per-node", "")
    if per_node.isdigit():
        found["SLURM_NTASKS_PER_NODE"] = per_node
    tasks = options.get("ntasks", "")
    if not tasks.isdigit() and nodes.isdigit() and len(nodes) < 9:
        tasks = str(int(nodes) * int(per_node)) if per_node.isdigit() and len(per_node) < 9 else nodes
    if tasks.isdigit():
        found |= {"SLURM_NTASKS": tasks, "SLURM_NPROCS": tasks}
    if "cpus-per-task" in options:
        found["SLURM_CPUS_PER_TASK"] = options["cpus-per-task"]
    gpus = gpus_of(options.get("gpus-per-node", options.get("gres", "")))
    if gpus is not None:
        found |= {"SLURM_GPUS_ON_NODE": str(gpus[1]), "SLURM_GPUS_PER_NODE": str(gpus[1])}
        if gpus[0]:
            found["SLURM_GPU_TYPE"] = gpus[0]  # not Slurm's: what the header says of the device
    return found


def _nodes(options: dict[str, str]) -> str:
    """How many hosts a header means that does not say it: as many as its tasks take, "" if that depends."""
    tasks, each = options.get("ntasks", ""), options.get("ntasks-per-node", "")
    if not tasks:
        return "1"
    known = re.fullmatch(r"\d{1,6}", tasks) and re.fullmatch(r"[1-9]\d{0,5}", each)
    return str(-(-int(tasks) // int(each))) if known else ""
