"""Calibrating on runs that were simulated with known parameters finds these parameters again."""

import pytest
from calibrate_runs import READERS, TRUTH

from hops.calibrate.calibrate import calibrate
from hops.calibrate.observations import observe
from hops.calibrate.predict import predict
from hops.calibrate.score import measured_outcome
from hops.cost.profile import read_profile, write_profile


def test_the_hosts_time_per_operation_is_found(fitted):
    for name, host in TRUTH.hosts.items():
        assert fitted.hosts[name].operation_s == pytest.approx(host.operation_s, rel=0.03)


def test_shares_of_the_peaks_are_found_as_far_as_stages_are_bound_by_them(fitted):
    for name, device in TRUTH.devices.items():
        assert fitted.devices[name].gemm_efficiency == pytest.approx(device.gemm_efficiency, rel=0.1)
        assert fitted.devices[name].memory_efficiency == pytest.approx(device.memory_efficiency, rel=0.15)


def test_the_codes_factors_on_operations_are_found(fitted):
    found, true = fitted.code.operations, TRUTH.code.operations
    for name in ("layer_backward", "last_forward", "norm_layer"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.15), name
    for name in ("first_forward", "step"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.25), name


def test_waits_for_batches_are_found(fitted):
    for name, host in TRUTH.hosts.items():
        assert fitted.hosts[name].first_fetch_s == pytest.approx(host.first_fetch_s, abs=0.15e-3)
        assert fitted.hosts[name].refill_s == pytest.approx(host.refill_s, abs=0.15e-3)


def test_messages_are_found(fitted):
    for name, host in TRUTH.hosts.items():
        assert fitted.hosts[name].message_s == pytest.approx(host.message_s, abs=0.12e-3)
    assert fitted.messages.turn_s == pytest.approx(0.0, abs=0.02e-3)  # the engine's ranks do not pause


def test_reductions_and_the_gap_are_found(fitted):
    for pair, true in zip(fitted.reduce.pairs, TRUTH.reduce.pairs, strict=True):
        assert pair.hosts == true.hosts
        assert sorted(pair.seconds_per_byte)[20] == pytest.approx(sorted(true.seconds_per_byte)[1], rel=0.03)
    assert fitted.gap.base_s == pytest.approx(TRUTH.gap.base_s, abs=0.1e-3)
    assert fitted.gap.per_rank_s == pytest.approx(TRUTH.gap.per_rank_s, abs=0.1e-3)


def test_stalls_are_counted_by_path_and_their_size_is_found(fitted):
    """One in five all-reduces between hosts c and d stalls; paths over a slow NIC never do."""
    paths = {path.between: path for path in fitted.reduce.paths}
    assert paths["c", "d"].reductions == 4 * 12
    assert 2 <= paths["c", "d"].stalls <= 14
    assert all(path.stalls == 0 for between, path in paths.items() if {"a", "b"} & set(between))
    free = next(pair for pair in fitted.reduce.pairs if pair.hosts == ("g6.4xlarge", "g6.4xlarge"))
    assert free.stall_s == pytest.approx(0.18, rel=0.1)


def test_a_run_that_was_not_learned_from_is_predicted(held_out, fitted_file):
    measured = measured_outcome(READERS.trace(held_out))
    predicted = predict(READERS.inputs(held_out), "calibrated", fitted_file)
    assert predicted.p50_iteration_s == pytest.approx(measured.p50_iteration_s, rel=0.02)
    assert predicted.forward_s == pytest.approx(measured.forward_s, rel=0.05)
    assert predicted.backward_s == pytest.approx(measured.backward_s, rel=0.05)
    assert predicted.optimizer_s == pytest.approx(measured.optimizer_s, rel=0.05)


def test_nothing_is_above_the_vendors_peak_and_every_interval_holds_its_value(fitted):
    for device in fitted.devices.values():
        assert device.gemm_efficiency <= 1
        assert device.memory_efficiency <= 1
    for report in fitted.report.values():
        for value, low, high in report["value_and_90_percent_interval"].values():
            assert low <= value <= high


def test_the_same_runs_give_the_same_bytes(runs, fitted_file, tmp_path):
    write_profile(calibrate(runs), tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_bytes() == fitted_file.read_bytes()


def test_the_profile_says_what_it_was_fitted_on(fitted):
    scope = fitted.scope
    assert (scope.runs, scope.scenarios) == (9, 9)
    assert (scope.hidden, scope.sequence_length, scope.stages) == ((512, 2048), (256, 4096), (2, 4))
    assert (scope.layers_per_stage, scope.transport) == ((1, 5), ("sockets",))
    assert fitted.devices["l4"].hosts == ("g6.4xlarge",)


def test_a_profile_of_one_run_reproduces_it(folders, tmp_path):
    """With less data than parameters beliefs fill in, and the run itself still comes out right."""
    folder = folders[0]
    profile = calibrate([observe(READERS.inputs(folder), READERS.trace(folder))])
    write_profile(profile, tmp_path / "one.yaml")
    assert read_profile(tmp_path / "one.yaml").scope.runs == 1
    predicted = predict(READERS.inputs(folder), "calibrated", tmp_path / "one.yaml")
    assert predicted.mean_iteration_s == pytest.approx(
        measured_outcome(READERS.trace(folder)).mean_iteration_s, rel=0.02
    )


def test_the_report_has_the_errors_of_every_stage_kind(fitted):
    stages = fitted.report["compute"]["stage_and_errors_of_forward_and_backward_pct"]
    labels = [label for label, _, _ in stages]
    assert "l4, 3 layers, hidden 1024, sequence 1024" in labels
    assert "a10g, 2 layers, last, hidden 1024, sequence 1024" in labels
    assert max(abs(error) for _, *errors in stages for error in errors) < 10
