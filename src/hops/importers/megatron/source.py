"""From a file or a text to the arguments of one launch: a shell script, bare flags, or a YAML document."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hops.decode.decode import opened
from hops.errors import UsageError
from hops.importers.megatron.flags import find
from hops.importers.megatron.hosts import Started, read_launcher
from hops.importers.megatron.settings import Words, read_flag_mapping, read_name_mapping, read_words
from hops.importers.shell import Command, Given, Script, read_script
from hops.importers.shell.values import Unknowns, is_known
from hops.units import shown

EXPECTED = "a run folder, a run.yaml, a launch script, or a file of flags"
_OTHER_MODELS = re.compile(r"bert|t5|vision|vit|mamba|hybrid|retro|ict|vlm|realm|multimodal|dino", re.IGNORECASE)
_TRAINS = re.compile(r"(pretrain|train|finetune|sft)\w*\.py$|^megatron\.training")
_MODEL_FLAGS = ("num-layers", "encoder-num-layers", "hidden-size", "yaml-cfg", "use-checkpoint-args")
_RUN_FLAGS = ("train-iters", "train-samples", "global-batch-size", "micro-batch-size", "yaml-cfg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a user asks for beside the launch itself.

    Attributes:
        devices: a catalog name per rank, in rank order, or one for all.
        hosts: such as `2x8xh100`.
        vocab: words of the vocabulary, 0: as the launch says.
        given: values of variables that the script's caller would set.
        command: number of the training command in a script that has several, 0: there is one.
        without: flags to leave out.
    """

    devices: Sequence[str] = ()
    hosts: str = ""
    vocab: int = 0
    given: Mapping[str, str] = field(default_factory=dict)
    command: int = 0
    without: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSource:
    """The arguments of one launch, and what starts it.

    Attributes:
        title: what the run is called, where a document says so.
    """

    words: Words
    unknowns: Unknowns
    where: str
    started: Started = field(default_factory=Started)
    notes: tuple[str, ...] = ()


def read_flags(text: str, asked: Asked, *, where: str, folder: Path | None = None) -> LaunchSource:
    """A shell script that launches Megatron-LM, or its flags alone."""
    script = read_script(text, where=where, given=Given(values=asked.given, folder=folder))
    command = _training(script, asked, where)
    at = _program_at(command.words)
    words = read_words(command.words[at:], command.bare[at:], script.unknowns)
    for name, why in script.unused.items():
        raise UsageError(f"{where}: --set {name}={asked.given[name]} changes nothing: {why}")
    notes = list(words.notes)
    if command.only_if:
        notes.append(f"the command of {command.where} runs only if: {', '.join(command.only_if)}")
    started = read_launcher(command.words[:at], command.launcher, dict(script.variables), script.unknowns)
    source = LaunchSource(
        words=words, unknowns=script.unknowns, where=command.where, started=started, notes=tuple(notes)
    )
    return _with_yaml(source, folder)


def _with_yaml(source: LaunchSource, folder: Path | None) -> LaunchSource:
    """--yaml-cfg: its file holds all arguments."""
    cfg = next((setting for setting in source.words.settings if setting.row.name == "yaml_cfg"), None)
    if cfg is None:
        return source
    if not is_known(cfg.value):
        raise UsageError(f"{source.where}: --yaml-cfg: which file is known only when the script runs; import that file")
    file = (folder or Path()) / cfg.value
    document, _ = opened(file, expected="a configuration for --yaml-cfg")
    if not isinstance(document, dict):
        raise UsageError(f"{file}: got {shown(document)}, expected sections of names and values")
    note = f"all arguments are those of {file}; Megatron-LM takes none from beside --yaml-cfg"
    words = read_name_mapping(document)
    return replace(source, words=words, where=str(file), notes=(*source.notes, note))


def read_document(document: Mapping[str, Any], asked: Asked, *, where: str) -> LaunchSource:
    """A `model_config.yaml` with MODEL_ARGS, or a configuration for --yaml-cfg."""
    known = Unknowns()
    refuse_idle({"--command": asked.command}, where)
    if isinstance(document.get("MODEL_ARGS"), dict):
        variables = {str(key): str(value) for key, value in _section(document, "ENV_VARS").items()}
        asked_for: set[str] = set()
        filled = {key: _filled(value, variables, asked.given, asked_for, f"{where}: MODEL_ARGS.{key}")
                  for key, value in document["MODEL_ARGS"].items()}  # fmt: skip
        unused = set(asked.given) - asked_for
        if unused:
            name = min(unused)
            raise UsageError(f"{where}: --set {name}={asked.given[name]} changes nothing: the file does not ask for it")
        return LaunchSource(words=read_flag_mapping(filled), unknowns=known, where=where)
    refuse_idle({"--set": asked.given}, where)
    return LaunchSource(words=read_name_mapping(document), unknowns=known, where=where)


def refuse_idle(options: Mapping[str, object], where: str) -> None:
    """Raise UsageError for options that change nothing about this kind of launch."""
    for name, value in options.items():
        if value:
            raise UsageError(f"{where}: {name} changes nothing about such a file; leave it out")


def _section(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _filled(
    value: object, variables: Mapping[str, str], given: Mapping[str, str], used: set[str], where: str
) -> object:
    """A value with `${NAME}` filled in; where the name is unknown the text stays, unless the flag matters."""

    def fill(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in given:
            used.add(name)
            return given[name]
        if name in variables:
            return variables[name]
        row = find(where.rsplit(".", 1)[-1])
        if row is not None and row.treatment == "nothing":
            return found[0]
        raise UsageError(f"{where}: ${{{name}}} is set nowhere in the file; add --set {name}=VALUE")

    return re.sub(r"\$\{(\w+)\}|\$([A-Za-z_]\w*)", fill, value) if isinstance(value, str) else value


def is_configuration(document: object) -> bool:
    """Whether a YAML document holds Megatron-LM's arguments by name: MODEL_ARGS, or sections of --yaml-cfg."""
    if not isinstance(document, dict):
        return False
    sections = {"language_model", "model_parallel", "num_layers"} & set(document)
    return isinstance(document.get("MODEL_ARGS"), dict) or bool(sections)


# -- which command trains


def _program_at(words: Sequence[str]) -> int:
    """Where the program's own arguments start: after `pretrain_gpt.py` or `-m module`; 0 for bare flags."""
    if words[0].startswith("--"):
        return 0
    for at, word in enumerate(words):
        if re.search(r"\.py$", word):
            return at + 1
        if (
            word == "-m"
            and at + 1 < len(words)
            and not re.search(r"torch\.distributed|torchrun|deepspeed", words[at + 1])
        ):
            return at + 2
    return next((at for at, word in enumerate(words) if word.startswith("--") and find(word) is not None), len(words))


def _has(command: Command, flags: Sequence[str]) -> bool:
    spelt = {word.strip().split("=")[0].split()[0].lstrip("-").replace("_", "-")
             for word in command.words if word.strip().startswith("--")}  # fmt: skip
    return any(flag in spelt for flag in flags)


def _training(script: Script, asked: Asked, where: str) -> Command:
    """The one command that trains. Raises UsageError that names all of them where that is not clear."""
    bare = [command for command in script.commands if command.words[0].startswith("--")]
    others = [command for command in script.commands if command not in bare]
    found = [command for command in others if _has(command, _MODEL_FLAGS)]
    if bare and not found and not any(_program(command) for command in others):
        return _joined(bare)
    for command in bare:
        raise UsageError(
            f"{command.where}: {command.words[0]} stands on a line of its own, outside of any command: a comment or a "
            "missing backslash ended the command above it; join the lines"
        )
    if len(found) > 1:
        trains = [command for command in found if _TRAINS.search(_program(command)) and _has(command, _RUN_FLAGS)]
        found = trains or found
    different = _different(found, script.unknowns)
    if asked.command:
        if asked.command > len(different):
            raise UsageError(f"{where}: --command {asked.command}: there are {len(different)} commands to choose from")
        return different[asked.command - 1]
    if not different:
        raise UsageError(f"{where}: no Megatron-LM flag found, expected some such as --num-layers 24{_seen(script)}")
    if len(different) > 1:
        raise UsageError("\n".join([
            f"{where}: {len(different)} commands have a model's flags; choose one with --command NUMBER",
            *(f"  {number}: {command.where}: {_program(command) or command.words[0]}"
              for number, command in enumerate(different, start=1)),
        ]))  # fmt: skip
    program = _program(different[0]).rsplit("/", 1)[-1]
    if _OTHER_MODELS.search(program.removesuffix(".py")):
        raise UsageError(f"{different[0].where}: {program} trains another kind of model; HOPS models GPT's")
    return different[0]


def _seen(script: Script) -> str:
    names = list(dict.fromkeys(_program(each) or each.words[0] for each in script.commands))
    shown = [script.unknowns.printed(name) for name in names[:5]]
    unread = f"; not read, because not here: {', '.join(script.unread)}" if script.unread else ""
    return (f"; its commands are {', '.join(shown)}" if shown else "") + unread


def _program(command: Command) -> str:
    at = _program_at(command.words)
    return command.words[at - 1] if (0 < at <= len(command.words) and _has(command, ("num-layers",))) or (
        0 < at < len(command.words)) else ""  # fmt: skip


def _joined(bare: Sequence[Command]) -> Command:
    """A file of flags, on one line or on many, is one launch."""
    first = bare[0]
    words = tuple(word for command in bare for word in command.words)
    marks = tuple(mark for command in bare for mark in command.bare)
    return Command(words=words, bare=marks, launcher=first.launcher, where=first.where.rsplit(":", 1)[0],
                   only_if=first.only_if, settings=first.settings)  # fmt: skip


def _different(commands: Sequence[Command], unknowns: Unknowns) -> list[Command]:
    """Commands that differ in what matters: the same launch on every node of a loop counts once."""
    found: dict[tuple[str, ...], Command] = {}
    for command in commands:
        at = _program_at(command.words)
        words = read_words(command.words[at:], command.bare[at:], unknowns)
        key = tuple(sorted(str(each) for each in words.settings if each.row.treatment != "nothing"))
        found.setdefault((_program(command), *key, *words.unknown, *words.faults), command)
    return list(found.values())
