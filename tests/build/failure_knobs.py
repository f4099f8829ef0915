"""Knobs of the failure section: field, base spec, overrides before and after; see test_api_knobs."""

BREAKS = """
simulation: {iterations: 3, seed: 7}
pipeline:
  stage_times: {forward: 2 ms, backward: 4 ms, message: 1 MiB}
  schedule: 1f1b
  microbatches: 6
hardware:
  nodes: [{name: a, devices: [l4, l4]}, {name: b, devices: [a10g]}]
  interconnect: ethernet-10
failure:
  enabled: true
  horizon: 2 s
  groups: [{name: rack, members: [a/0, b]}]
  models:
    - kind: stop
      on: devices
      between: {distribution: exponential, mean: 60 ms}
      repair: {distribution: exponential, mean: 4 ms}
"""


def _model(text):
    return [f"failure.models=[{text}]"]


_STOP = _model("{kind: stop, on: rack, at: [30 ms], repair: 9 ms}")
_SLOW = _model("{kind: slow, on: a, at: [30 ms], repair: 20 ms, factor: 1.5}")
FAILURE_KNOBS = {
    "failure.enabled": (BREAKS, [], ["failure.enabled=false"]),
    "failure.groups.name": (BREAKS, _STOP, _model("{kind: stop, on: a, at: [30 ms], repair: 9 ms}")),
    "failure.groups.members": (BREAKS, _STOP, [*_STOP, "failure.groups[0].members=[a/1]"]),
    "failure.models.name": (BREAKS, [], ["failure.models[0].name=other"]),
    "failure.models.kind": (
        BREAKS,
        _model("{kind: link-down, on: a, at: [20 ms], repair: 9 ms}"),
        _model("{kind: stop, on: a, at: [20 ms], repair: 9 ms}"),
    ),
    "failure.models.on": (BREAKS, _STOP, _model("{kind: stop, on: [a/1, b/0], at: [30 ms], repair: 9 ms}")),
    "failure.models.only": (BREAKS, [], ["failure.models[0].only=a10g", "failure.models[0].name=stop devices"]),
    "failure.models.between": (BREAKS, [], ["failure.models[0].between=50 ms"]),
    "failure.models.at": (BREAKS, _STOP, _model("{kind: stop, on: rack, at: [30 ms, 60 ms], repair: 9 ms}")),
    "failure.models.share": (
        BREAKS,
        _model("{kind: slow, on: devices, share: 0.0, factor: 2.0}"),
        _model("{kind: slow, on: devices, share: 1.0, factor: 2.0}"),
    ),
    "failure.models.repair": (BREAKS, _STOP, _model("{kind: stop, on: rack, at: [30 ms], repair: 10 ms}")),
    "failure.models.factor": (BREAKS, _SLOW, [*_SLOW, "failure.models[0].factor=1.6"]),
    "failure.models.model.parameters": (
        BREAKS,
        _model("{kind: slow, on: rack, factor: 2.0, model: {name: share, probability: 0.0}}"),
        _model("{kind: slow, on: rack, factor: 2.0, model: {name: share, probability: 1.0}}"),
    ),
}
FAILURE_ELSEWHERE = {
    "output.faults": "tests/cli",
    "failure.horizon": "test_api_faults: must not be shorter than the run",
    "failure.trace": "test_api_faults: needs a file",
    "failure.plan": "test_api_faults: needs a file",
    "failure.models.preset": "test_api_faults: rates of a preset hardly ever hit a short run",
    "failure.models.model.name": "test_api_faults: a model that never repairs stalls the run",
    "failure.link_timeout": "test_api_faults: the job fails",
    **{
        f"failure.recovery.{key}": "tests/fleet/test_goodput_knobs.py"
        for key in (
            *("detection", "restart", "reconfigure", "state", "storage_bandwidth", "spares", "state_from"),
            *("split_backward", "checkpoint.interval", "checkpoint.asynchronous", "checkpoint.pause"),
            "checkpoint.write",
        )
    },
    "failure.recovery.policy.name": "tests/fleet/test_goodput_knobs.py",
    "failure.recovery.policy.parameters": "tests/fleet/test_recovery_times.py: a plug-in's, which a spec passes on",
}
