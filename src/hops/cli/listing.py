"""`hops list`: what names a spec may use."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hops.cli.console import JsonOption, SetOption, SpecArgument

app = typer.Typer(help="List the devices, links, models and schedules that a spec may name.", no_args_is_help=True)
CatalogOption = Annotated[
    list[Path] | None, typer.Option("--catalog", metavar="FILE", help="Own catalog files, as in hardware.catalog.")
]


Row = dict[str, Any]
_SENTENCES = ("aliases", "what")  # columns that may take several lines
Columns = dict[str, Callable[[Row], str]]  # heading to text of a row; starts with > if it is a number


@app.command()
def devices(catalog: CatalogOption = None, *, as_json: JsonOption = False) -> None:
    """Devices of the catalog: memory, dense rate in bf16, NIC, price. `--json` adds other rates and sources."""
    from hops.hardware.catalog import Catalog
    from hops.hardware.tables import device_rows
    from hops.units import format_bandwidth, format_bytes

    columns: Columns = {
        "device": lambda row: row["name"],
        "aliases": lambda row: ", ".join(row["aliases"]),
        ">memory": lambda row: format_bytes(row["memory_bytes"]),
        ">bandwidth": lambda row: format_bandwidth(row["memory_bytes_per_s"]),
        ">TFLOP/s": _dense_tflops,
        "host NIC": lambda row: row["nic"],
        ">USD/h": lambda row: f"{row['price_usd_per_hour']:.2f}",
    }
    _print(device_rows(Catalog.load(catalog or ())), columns, as_json=as_json)


@app.command()
def links(catalog: CatalogOption = None, *, as_json: JsonOption = False) -> None:
    """Interconnects of the catalog: bandwidth of one direction, latency, where they are used."""
    from hops.hardware.catalog import Catalog
    from hops.hardware.tables import interconnect_rows
    from hops.units import format_bandwidth, format_time

    columns: Columns = {
        "link": lambda row: row["name"],
        "aliases": lambda row: ", ".join(row["aliases"]),
        ">bandwidth": lambda row: format_bandwidth(row["bytes_per_s"]),
        ">latency": lambda row: format_time(row["latency_ms"] / 1e3),
        "topology": lambda row: row["topology"],
        "what": lambda row: row["title"],
    }
    _print(interconnect_rows(Catalog.load(catalog or ())), columns, as_json=as_json)


@app.command()
def models(*, as_json: JsonOption = False) -> None:
    """Models by name: their shapes and parameters."""
    from dataclasses import asdict

    from hops.model.models import known_models

    columns: Columns = {
        "model": lambda row: row["name"],
        ">layers": lambda row: str(row["layers"]),
        ">hidden": lambda row: str(row["hidden"]),
        ">heads": lambda row: f"{row['heads']}/{row['kv_heads']}",
        ">ffn": lambda row: str(row["ffn_hidden"]),
        ">experts": lambda row: (
            "-" if row["experts"] is None else f"{row['experts']['count']}/{row['experts']['top_k']}"
        ),
        ">vocab": lambda row: str(row["vocab"]),
        ">positions": lambda row: str(row["max_positions"]),
        ">parameters": lambda row: f"{row['parameters'] / 1e9:.3f} B",
    }
    rows = [{"name": name, **asdict(model), "parameters": model.parameters} for name, model in known_models().items()]
    _print(rows, columns, as_json=as_json)


@app.command()
def profiles(*, as_json: JsonOption = False) -> None:
    """Profiles that come with HOPS, for `hardware.profile`: their devices, and what they were learned from."""
    from hops.cost.kernel_profile import KernelProfile, read_any_profile
    from hops.cost.profile import shipped_profile, shipped_profiles

    def row(name: str) -> Row:
        found = read_any_profile(shipped_profile(name))
        if isinstance(found, KernelProfile):
            learned = "; ".join(f"{source}: {models}" for source, models in found.learned.items())
        else:
            learned = f"{found.scope.runs} measured runs"
        return {"name": name, "devices": sorted(found.devices), "learned": learned}

    columns: Columns = {
        "profile": lambda each: each["name"],
        "devices": lambda each: ", ".join(each["devices"][:3]) + (" ..." if len(each["devices"]) > 3 else ""),
        "what": lambda each: each["learned"],
    }
    _print([row(name) for name in shipped_profiles()], columns, as_json=as_json)


@app.command()
def schedules(
    ranks: Annotated[int, typer.Option("--ranks", "-p", min=1, max=64, help="Ranks of the example.")] = 4,
    microbatches: Annotated[
        int, typer.Option("--microbatches", "-m", min=1, max=1024, help="Microbatches of the example.")
    ] = 8,
    *,
    as_json: JsonOption = False,
) -> None:
    """Schedules by name: what they come to on a small pipeline, what they need, their own parameters.

    The example has equal stages with F = I = W and no messages; W keeps half of an activation. `in flight` is the most
    that a rank holds, in activations of one microbatch; `latencies` are the messages on the critical path: by how many
    latencies the pipeline gets longer.
    """
    from hops.report.schedules import schedule_rows, schedule_table

    rows = schedule_rows(ranks, microbatches)
    if as_json:
        from hops.cli.console import show_json

        show_json(rows)
    else:
        from hops.cli.console import show

        show(schedule_table(rows, ranks, microbatches))


@app.command()
def recoveries(*, as_json: JsonOption = False) -> None:
    """Recovery policies by name."""
    from inspect import getdoc

    from hops.fleet.recovery.base import RECOVERIES

    columns: Columns = {"policy": lambda row: row["name"], "what": lambda row: row["what"]}
    rows = [
        {"name": name, "what": " ".join((getdoc(RECOVERIES.get(name)) or "").partition("\n\n")[0].split())}
        for name in RECOVERIES.names()
    ]
    _print(rows, columns, as_json=as_json)


def _dense_tflops(row: Row) -> str:
    """At bf16, or at fp16 where the device has no bf16."""
    for number_format, label in (("bf16", ""), ("fp16", "fp16 ")):
        if row[f"{number_format}_flop_per_s"]:
            return f"{label}{row[f'{number_format}_flop_per_s'] / 1e12:,.0f}"
    return "-"


def _print(rows: Sequence[Row], columns: Columns, *, as_json: bool) -> None:
    from hops.cli.console import show, show_json
    from hops.report.tables import plain_table

    if as_json:
        show_json(rows)
        return
    first, *others = columns
    table = plain_table(first)
    for heading in others:
        justify: Literal["left", "right"] = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, no_wrap=heading not in _SENTENCES)
    for row in rows:
        table.add_row(*(text(row) for text in columns.values()))
    show(table)


def show(spec: SpecArgument, overrides: SetOption = None, *, as_json: JsonOption = False) -> None:
    """Print the fully resolved spec, every default visible; it loads back to the same run.

    Beside what is open (null, balanced) stands, as a comment, what it comes out as; at the end, of a job with several
    axes, its mesh, its groups, and every collective with bytes and seconds.
    """
    from hops.build.exchanged import job_lines
    from hops.build.remarks import inferred
    from hops.build.setup import build
    from hops.cli.console import show_json
    from hops.spec.load import load
    from hops.spec.text import dump

    loaded = load(spec, overrides or ())
    if as_json:
        show_json(loaded.model_dump(mode="json"))
    else:
        typer.echo(dump(loaded, inferred(loaded)), nl=False)
        if loaded.mesh().stage_ranks > 1:
            typer.echo("\n" + "\n".join(f"# {line}" for line in job_lines(build(loaded))))


def schema() -> None:
    """Print the JSON Schema of a spec.

    For completion in editors: `hops schema > hops.schema.json`, then start the spec with
    `# yaml-language-server: $schema=hops.schema.json`.
    """
    from hops.cli.console import show_json
    from hops.spec.text import json_schema

    show_json(json_schema())


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("spec.yaml"),
    *,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file if it exists.")] = False,
    from_gpus: Annotated[
        bool, typer.Option("--from-gpus", help="With the GPUs of this machine as its devices.")
    ] = False,
) -> None:
    """Write a commented starter spec."""
    from hops.cli.gpus import catalog_name, found_gpus, node_text
    from hops.errors import UsageError
    from hops.files import atomic_write
    from hops.hardware.catalog import Catalog
    from hops.spec.text import starter

    if path.exists() and not force:
        raise UsageError(f"{path} exists already; give another name, or --force to replace it")
    text = starter()
    if from_gpus:
        catalog = Catalog.load()
        kinds = [catalog.device(name) for name in catalog.device_names()]
        text = starter(nodes=node_text([catalog_name(gpu, kinds) for gpu in found_gpus()]))
    with atomic_write(path) as out:
        out.write(text)
    typer.echo(f"wrote {path}; next: hops run {path}")
