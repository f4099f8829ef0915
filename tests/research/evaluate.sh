# Predicts an iteration as floor_ms + slope_ms * layers: RUNS TRAIN REPORT, as an evaluation command is called.
# Fails without a model, as a broken build does; runs the candidate's hook.sh, as Python runs what its modules do.
set -e
[ ! -f model/hook.sh ] || . model/hook.sh
cat model/model.txt "$1"/*/run.txt | tr '"' "'" | awk '
$1 == "floor_ms" { floor = $2; known++ }
$1 == "slope_ms" { slope = $2; known++ }
$1 == "run" { runs++; name = $2 }
$1 == "layers" { layers = $2 }
$1 == "base_ms" { base = $2 }
$1 == "ms" {
    error = 100 * ($2 / (floor + slope * layers) - 1)
    size = error < 0 ? -error : error
    sum += size
    if (size > worst) worst = size
    rows = rows (rows ? "," : "") sprintf(row, name, $2, layers, error, error / 10, floor, base)
}
END {
    if (known != 2) { print "model.txt: expected floor_ms and slope_ms"; exit 1 }
    mean = sum / runs
    printf suite, runs, mean, worst, mean, mean / 10, 1 - mean / 100, rows
}' \
row='{"run": "%s", "iteration_ms": %s, "groups": {"depth": %s}, "variants": {"calibrated": {
  "throughput_error_pct": %.9f, "bubble_error_pp": %.9f,
  "terms": {"floor": {"predicted_ms": %s, "measured_ms": %s}}}}}' \
suite='{"n": %d, "variants": {"calibrated": {"throughput_mape_pct": %.9f, "throughput_max_pct": %.9f,
  "iteration_p50_mape_pct": %.9f, "bubble_mae_pp": %.9f, "utilization_spearman": %.9f,
  "forward_mape_pct": 1, "backward_mape_pct": 1, "latency_mape_pct": null}}, "runs": [%s]}' - > "$3"
