"""`hops import megatron`: a spec, and a word on every flag."""

from pathlib import Path

LAUNCHES = Path(__file__).parents[1] / "importers" / "launches"
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_spec_goes_to_standard_output_and_the_flags_to_the_other(command):
    code, out, err = command("import", "megatron", str(EXAMPLES / "megatron-launch.sh"), "--devices", "l4,l4,l4,l4")
    assert code == 0
    assert out.startswith("#")
    assert "partition:" in out
    assert "applied:\n  --pipeline-model-parallel-size 4\n  --num-layers 24\n" in err
    assert "change nothing that HOPS models:\n  --lr 1.5e-4\n  --train-iters 500000\n" in err


def test_with_a_file_the_flags_are_printed(command):
    launch = str(LAUNCHES / "caller.sh")
    code, out, _ = command(
        *("import", "megatron", launch, "--hosts", "2x4xh100"),
        *("--set", "WORLD_SIZE=8", "--without", "bf16", "-o", "s.yaml"),
    )
    assert code == 0
    assert "precision: fp32" in Path("s.yaml").read_text()
    assert "left out, as asked:\n  --bf16\n" in out
    assert "change nothing that HOPS models:\n  --save $SAVE_DIR\n" in out
    assert out.endswith("wrote s.yaml; next: hops run s.yaml\n")


def test_a_refused_launch_writes_nothing_and_says_all_at_once(command):
    flags = "--num-layers 8 --num-experts 4 --moe-token-dropping --use-megatron-fsdp --hiden-size 64"
    code, out, err = command("import", "megatron", "--flags", flags, "--devices", "l4", "-o", "s.yaml")
    assert (code, out) == (2, "")
    assert not Path("s.yaml").exists()
    for text in (
        "take one out with --without NAME to go on",
        "--moe-token-dropping: this choice of experts is not modelled",
        "--use-megatron-fsdp: fully sharded data parallelism is not modelled",
        "--hiden-size (did you mean --hidden-size?): no flag of Megatron-LM is spelt so",
    ):
        assert text in " ".join(err.split())


def test_options_that_are_wrong_say_how_they_are_written(command):
    launch = str(LAUNCHES / "caller.sh")
    assert "expected NAME=VALUE, such as --set WORLD_SIZE=16" in command("import", "megatron", launch, "--set", "A")[2]
    assert "give either RUN or --flags" in command("import", "megatron")[2]


def test_one_vocabulary_for_a_tokenizer(command):
    launch = str(LAUNCHES / "slurm_tasks.sh")
    assert "add --vocab N" in command("import", "megatron", launch)[2]
    code, out, _ = command("import", "megatron", launch, "--vocab", "128256")
    assert code == 0
    assert "vocab: 128256" in out
