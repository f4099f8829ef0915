"""The spec: YAML in, one frozen Spec out; the only room that knows the validation library."""

from hops.config.spec import Spec

__all__ = ["Spec"]
