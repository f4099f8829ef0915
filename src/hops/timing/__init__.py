"""When: longest path, re-timing, list scheduling, memory peaks; expected costs of stages."""

from hops.timing.examples import NamedProfile, profile_from_json, read_profiles
from hops.timing.longest_path import Evaluation, evaluate
from hops.timing.stage_costs import StageCosts

__all__ = ["Evaluation", "NamedProfile", "StageCosts", "evaluate", "profile_from_json", "read_profiles"]
