"""Where recorded runs and benchmark inputs lie: in HOPS_DATA, or in a folder `shared` beside the checkout.

They are not part of the project; tests that need them are skipped elsewhere, and say so.
"""

import os
from pathlib import Path

SHARED = Path(os.environ.get("HOPS_DATA") or Path(__file__).parents[2] / "shared")
FACTS = SHARED / "facts"
FIXTURES = SHARED / "fixtures"


def missing(path):
    """The reason to skip a test that needs this path."""
    return f"needs {path}: a clone alone does not have it; name the folder that holds fixtures/ and facts/ in HOPS_DATA"
