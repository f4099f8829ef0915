"""`hops draw`: a figure of a run, and options that are refused."""

SPEC = """
pipeline: {model: gpt2, microbatches: 4}
hardware: {nodes: [{devices: [l4, l4]}]}
"""


def test_draw_writes_a_figure_as_asked(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    options = ("--width", "3.3in", "--font-size", "7", "--window", "0s:0.1s", "--ranks", "0-1", "--title", "Mine")
    assert command("draw", "spec.yaml", "-o", "figure.svg", *options) == (0, "wrote figure.svg\n", "")
    assert ">Mine</text>" in (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert command("draw", "spec.yaml", "-o", "one.pdf", "--iterations", "1")[0] == 0


def test_draw_refuses_what_makes_no_sense(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    for options, complaint in (
        (("-o", "figure.gif"), "expected .png, .svg or .pdf"),
        (("-o", "f.pdf", "--window", "0s"), "--window: got '0s', expected two times such as 0s:2s"),
        (("-o", "f.pdf", "--ranks", "9"), "cannot show rank 9: the run has ranks 0 to 1"),
        (("-o", "f.pdf", "--iterations", "x"), "iterations: got 'x', expected numbers"),
        (("-o", "f.pdf", "--width", "3"), "expected a length such as 3.3in"),
    ):
        code, _, err = command("draw", "spec.yaml", *options)
        assert code == 2
        assert complaint in err
