"""The spec: YAML in, one frozen Spec out; the only room that knows the validation library."""

from hops.config.load import load, loads
from hops.config.spec import Spec
from hops.config.text import dump, json_schema, starter

__all__ = ["Spec", "dump", "json_schema", "load", "loads", "starter"]
