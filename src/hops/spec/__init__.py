"""The spec: YAML in, one frozen Spec out; the only room that knows the validation library."""

from hops.spec.load import load, loads
from hops.spec.spec import Spec
from hops.spec.text import dump, json_schema, starter

__all__ = ["Spec", "dump", "json_schema", "load", "loads", "starter"]
