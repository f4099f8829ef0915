"""Which command of a script is imported, on which devices it runs, and what is asked where that is not said."""

import random
import resource
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hops.errors import HopsError, UsageError
from hops.importers.megatron.hosts import stated_hosts
from hops.importers.megatron.launch import launch_from_flags, read_launch
from hops.importers.megatron.source import Asked
from hops.importers.megatron.spec import spec_text
from hops.spec.load import loads

MODEL = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
    "--micro-batch-size 1 --vocab-size 1000 --bf16"
)
TRAIN = f"torchrun --nproc_per_node 2 pretrain_gpt.py {MODEL} --pipeline-model-parallel-size 2 --global-batch-size 8"
LAUNCHES = Path(__file__).parent / "launches"


def launched(text, devices=("h100",), **asked):
    return launch_from_flags(text, devices, asked=Asked(**asked))


def refusal(text, devices=("h100",), **asked):
    with pytest.raises(UsageError) as error:
        launched(text, devices, **asked)
    return str(error.value)


# -- which command


def test_flags_of_several_commands_are_never_merged():
    other = TRAIN.replace("--num-layers 8", "--num-layers 4 --swiglu")
    text = refusal(f"{TRAIN}\n{other}")
    assert "2 commands have a model's flags; choose one with --command NUMBER" in text
    assert "  1: command line:1: pretrain_gpt.py" in text
    assert "  2: command line:2: pretrain_gpt.py" in text
    assert (launched(f"{TRAIN}\n{other}", command=1).num_layers, launched(f"{TRAIN}\n{other}", command=1).swiglu) == (
        8,
        False,
    )
    assert (launched(f"{TRAIN}\n{other}", command=2).num_layers, launched(f"{TRAIN}\n{other}", command=2).swiglu) == (
        4,
        True,
    )
    assert "--command 3: there are 2 commands" in refusal(f"{TRAIN}\n{other}", command=3)


def test_the_command_that_trains_is_taken_before_those_that_evaluate_or_convert():
    evaluate = f"python tasks/main.py --task LAMBADA {MODEL}"
    assert launched(f"{evaluate}\n{TRAIN}").num_microbatches == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "python train.py --lr 3",
            "no Megatron-LM flag found, expected some such as --num-layers 24; its commands are train.py",
        ),
        ("source gpt.sh", "not read, because not here: gpt.sh (line 1)"),
        (TRAIN.replace("_gpt", "_bert"), "pretrain_bert.py trains another kind of model; HOPS models GPT's"),
        (f"{TRAIN}\n    --fp16", "--fp16 stands on a line of its own, outside of any command: a comment or a missing"),
        (f"{TRAIN} --lr 1 2", "got '2' after --lr where a flag was expected"),
        (f"{TRAIN} $FLAGS", ""),
        (
            f"source env.sh\n{TRAIN} $FLAGS",
            "flags may stand in $FLAGS, which is set nowhere here, but perhaps in env.sh",
        ),
        (f"if [ -f x ]; then F=--fp16; fi\n{TRAIN} $F", "flags may stand in $F, which depends on the test `[ -f x ]`"),
        (
            TRAIN.replace("layers 8", "layers $L"),
            "--num-layers $L: its value is set nowhere in the script; add --set L=VALUE",
        ),
        (
            TRAIN.replace("layers 8", "layers $(nproc)"),
            "--num-layers $(...): its value is the output of `nproc` (line 1)",
        ),
        (
            f"TP=$(nproc)\n{TRAIN} --tensor-model-parallel-size $TP",
            "$TP: its value is the output of `nproc` (line 1); add --set TP",
        ),
    ],
)
def test_what_a_script_leaves_open_is_asked_for(text, message):
    if not message:
        assert "$FLAGS is set nowhere in the script: taken as empty" in launched(text).arguments.notes[0]
        assert launched(text, given={"FLAGS": "--fp16 --swiglu"}).swiglu
        return
    assert message in refusal(text)


def test_stated_values_are_used_or_refused():
    text = TRAIN.replace("layers 8", "layers $L").replace("2 pretrain", "${N:-2} pretrain")
    assert launched(text, given={"L": "4"}).num_layers == 4
    assert launched(text, given={"L": "4", "N": "4"}).data_parallel == 2
    assert "--set M=1 changes nothing: the script does not ask for M" in refusal(text, given={"L": "4", "M": "1"})
    assert "--set L=1 changes nothing: the script sets L itself (line 1)" in refusal(f"L=4\n{text}", given={"L": "1"})


# -- on which devices


def hosts_of(launch):
    return [(placed.host, placed.device) for placed in launch.placed]


def test_the_launcher_says_how_the_devices_stand_in_hosts():
    text = TRAIN.replace("--nproc_per_node 2", "--nproc_per_node 4 --nnodes 2")
    launch = launched(text)
    assert (launch.data_parallel, hosts_of(launch)) == (4, [("node0", "h100"), ("node1", "h100")])
    together = launched(f"{text} --use-tp-pp-dp-mapping")
    assert hosts_of(together) == [("node0", "h100"), ("node0", "h100")]
    assert len(loads(spec_text(together)).hardware.hosts()) == 1


def test_stated_hosts_hold_over_the_script_with_a_note():
    launch = launched(TRAIN, (), hosts="1x2xl4,2x1xa10g")
    assert [(each.host, each.device) for each in stated_hosts("1x2xl4,2x1xa10g")] == [
        ("node0", "l4"), ("node0", "l4"), ("node1", "a10g"), ("node2", "a10g")]  # fmt: skip
    assert hosts_of(launch) == [("node0", "l4"), ("node1", "a10g")]
    assert launch.arguments.notes == ("the script starts 1 x 2 processes; --hosts 1x2xl4,2x1xa10g holds",)


def test_devices_on_hosts_of_their_own_are_no_secret():
    flags = f"{MODEL} --pipeline-model-parallel-size 2"
    assert launched(flags, ("h100", "l4")).arguments.notes == (
        "each device stands on a host of its own; --hosts says otherwise",
    )


@pytest.mark.parametrize(
    ("text", "devices", "asked", "message"),
    [
        (TRAIN, (), {}, "does not say on which devices; add their type: --hosts 1x2xh100"),
        (MODEL, (), {}, "flags do not say what they run on; add a device per rank: --devices h100,l4, or --hosts"),
        (TRAIN, ("h100",) * 3, {}, "got 3 devices, but the script starts 1 hosts x 2 processes"),
        (TRAIN, ("h100",), {"hosts": "1x2xh100"}, "got both --hosts and --devices"),
        (TRAIN, (), {"hosts": "2x8"}, "--hosts 2x8: got '2x8', expected hosts x devices x type, such as 2x8xh100"),
        (TRAIN, (), {"hosts": "0x8xh100"}, "expected hosts x devices x type"),
        (TRAIN, (), {"hosts": "999999x999999xh100"}, "got more than 1000000 devices"),
        (TRAIN, (), {"hosts": "1x3xh100"}, "got 3 devices for --pipeline-model-parallel-size 2, expected a multiple"),
        (TRAIN.replace("node 2", "node $N"), ("l4",), {}, "$N is set nowhere in the script; add --set N=VALUE; or add"),
    ],
)  # fmt: skip
def test_what_is_not_said_of_the_devices_is_asked_for(text, devices, asked, message):
    assert message in refusal(text, devices, **asked)


# -- documents


def test_a_configuration_says_what_it_does_not_know(tmp_path):
    file = tmp_path / "model_config.yaml"
    file.write_text((LAUNCHES / "model_config.yaml").read_text())
    asked = {"hosts": "1x2xl4"}
    with pytest.raises(
        UsageError, match=r"MODEL_ARGS.--pipeline-model-parallel-size: \$\{PIPELINE\} is set nowhere in the file"
    ):
        read_launch(file, asked=Asked(**asked))
    with pytest.raises(UsageError, match="--set X=1 changes nothing: the file does not ask for it"):
        read_launch(file, asked=Asked(**asked, given={"PIPELINE": "2", "X": "1"}))
    launch = read_launch(file, asked=Asked(**asked, given={"PIPELINE": "2"}))
    assert "--data-path ${DATA_PATH}/text" in launch.arguments.nothing
    file.write_text(file.read_text().replace("--hidden-size", "--hiden-size"))
    with pytest.raises(
        UsageError, match=r"--hiden-size \(did you mean --hidden-size\?\): no flag of Megatron-LM is spelt so"
    ):
        read_launch(file, asked=Asked(**asked, given={"PIPELINE": "2"}))


def test_a_yaml_cfg_holds_all_arguments():
    launch = read_launch(LAUNCHES / "yaml_cfg.sh", ("h100",))
    assert (launch.swiglu, launch.biases, launch.rotary, launch.rms_norm, launch.tied) == (
        True,
        False,
        True,
        True,
        False,
    )
    assert launch.ffn_hidden_size == 1024 * 8 // 3 // 64 * 64
    assert "Megatron-LM takes none from beside --yaml-cfg" in launch.arguments.notes[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  num_moe_experts: 8", "num_moe_experts 8: this choice of experts is not modelled"),
        ("  activation_func: relu", "activation_func: got 'relu', expected one of gelu, swiglu"),
        ("  hidden_sise: 3", "hidden_sise (did you mean hidden_size?): no flag"),
        ("  num_query_groups: 4", ""),
        ("  recompute_granularity: full", ""),
        ("  virtual_pipeline_model_parallel_size: 2", ""),
        ("  num_layers_in_first_pipeline_stage: 1", ""),
    ],
)
def test_names_of_a_configuration_are_flags(tmp_path, line, message):
    file = tmp_path / "cfg.yaml"
    key = line.split(":")[0]
    lines = [each for each in (LAUNCHES / "cfg.yaml").read_text().splitlines() if not each.startswith(f"{key}:")]
    file.write_text("\n".join([lines[0], line, *lines[1:]]))
    asked = Asked(hosts="1x4xh100")
    if message:
        with pytest.raises(UsageError) as error:
            read_launch(file, asked=asked)
        assert message in str(error.value)
    else:
        plain = spec_text(read_launch(LAUNCHES / "cfg.yaml", asked=asked))
        assert spec_text(read_launch(file, asked=asked)).splitlines()[1:] != plain.splitlines()[1:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MODEL_ARGS: {--num-layers: [[1]]}", "--num-layers: got a list, expected a value or a list of values"),
        ("MODEL_ARGS: {--bf16: &a [*a]}", "--bf16: got a list, expected true or false"),
        ("num_layers: &a {b: [[1]]}", "b: no flag of Megatron-LM is spelt so"),
        ("language_model: {num_layers: [{a: 1}]}", "num_layers: got a mapping, expected a value or a list of values"),
        ("language_model: &a {num_layers: *a}", ""),
        ("MODEL_ARGS: [", "cfg.yaml:1:14: not YAML"),
    ],
)
def test_documents_that_hold_themselves_or_too_much_are_refused(tmp_path, text, message):
    (tmp_path / "cfg.yaml").write_text(text)
    with pytest.raises(UsageError) as error:
        read_launch(tmp_path / "cfg.yaml", asked=Asked(hosts="1x1xl4"))
    assert message in str(error.value)


@pytest.mark.parametrize("asked", [{"devices": ["l4"]}, {"hosts": "1x1xl4"}, {"given": {"A": "1"}}, {"command": 1}])
def test_options_that_a_run_yaml_does_not_take_are_refused(tmp_path, asked):
    (tmp_path / "run.yaml").write_text(
        "arguments: {num-layers: 2}\nstages: [{gpu: L4, host: a, device_id: b, layers: 2}]\n"
    )
    with pytest.raises(UsageError, match="changes nothing about such a file; leave it out"):
        read_launch(tmp_path, asked=Asked(**asked))


def test_a_file_without_end_is_refused():
    with pytest.raises(UsageError, match="/dev/zero: got more than 1048576 bytes, expected a run folder"):
        read_launch(Path("/dev/zero"), ("l4",))


@pytest.mark.parametrize(
    ("launcher", "hosts", "devices"),
    [
        ("torchrun --nnodes=2 --nproc-per-node=2", 2, 4),
        ("python -m torch.distributed.run --nnodes 2 --nproc_per_node 1", 2, 2),
        ("srun -N 2 --ntasks-per-node=2 python", 2, 4),
        ("srun --nodes=2 -n 4 python", 2, 4),
        ("srun -n 4 python", 0, 0),
        ("mpirun -np 4 python", 0, 0),
        ("deepspeed --num_nodes=2 --num_gpus 2", 2, 4),
        ("accelerate launch --num_machines 2 --num_processes 4", 2, 4),
        ("torchrun --standalone --nproc_per_node gpu", 0, 0),
    ],
)
def test_every_launcher_says_how_many_processes_start(launcher, hosts, devices):
    command = TRAIN.replace("torchrun --nproc_per_node 2", launcher)
    if not devices:
        text = refusal(command)
        assert "is no number; or add --hosts" in text or "on how many hosts is not said; or add --hosts" in text
        return
    launch = launched(command)
    assert len(launch.placed) * launch.data_parallel == devices
    assert len({placed.host for placed in launch.placed}) == hosts


# -- fuzzed launches

BITS = [
    "$(", "${", "}", ")", '"', "'", "`", "\\", "$((", "))", "((", "*", "?", "[", "]", "{1..9}", "done", "fi", "esac",
    "${A:=", "${A/", "//", "%", "##", "#", "!", "$1", "$@", "&&", "||", "|", "&", ";", "0", "9" * 30, "--x",
    " --bf16", " --num-experts=3", "--num-layers", "\x00", "\U000f0000", "é", "\n", "<<EOF\n", "while true; do ",
    "if [ ", "]; then ", "case x in ", "f(){ f; }; f\n", "eval ", "shift\n", "for i in {1..100000}; do ", "A+=$A$A\n",
    "X=$((X**9))\n", ' --pipeline-model-parallel-layout "(t|)*99999" ',
]  # fmt: skip


def mutated(text, every, draw):
    for _ in range(draw.randint(1, 5)):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.choice([1, 3, 10, 60]))
        other = draw.choice(every)
        at = draw.randrange(len(other))
        insert = draw.choice(["", draw.choice(BITS), text[start:end] * 2, other[at : at + draw.randint(1, 200)]])
        text = text[:start] + insert + text[draw.choice([start, end]) :]
    return text


def test_a_thousand_fuzzed_launches_are_read_or_refused():
    """No other error than ours, none over 10 s or 2 GiB."""
    draw = random.Random(9)
    every = [file.read_text() for file in sorted(LAUNCHES.iterdir()) if file.suffix in {".sh", ".txt"}]
    imported = 0
    for _ in range(1000):
        text = mutated(draw.choice(every), every, draw)
        start = time.process_time()
        with suppress(HopsError):
            imported += bool(spec_text(launch_from_flags(text, ["h100"], asked=Asked(vocab=1000), folder=LAUNCHES)))
        assert time.process_time() - start < 10
    assert 20 < imported < 980
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20  # KiB
