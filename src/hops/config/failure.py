"""The failure section: what breaks during the run. For now nothing can; fault models come in here."""

from typing import Literal

from pydantic import Field

from hops.config.fields import Section


class Failure(Section):
    """Faults of devices, hosts and links."""

    enabled: Literal[False] = Field(default=False, description="whether anything breaks")
