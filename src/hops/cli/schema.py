"""`hops schema`: the JSON Schema of a spec, for editors."""


def schema() -> None:
    """Print the JSON Schema of a spec.

    For completion in editors: `hops schema > hops.schema.json`, then start the spec with
    `# yaml-language-server: $schema=hops.schema.json`.
    """
    from hops.cli.console import show_json
    from hops.config.text import json_schema

    show_json(json_schema())
