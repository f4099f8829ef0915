"""What MkDocs asks of us: navigation by folder, and pages for files of the repository that pages link to."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SECTIONS = {"Start": "tutorials", "How to": "how-to", "Reference": "reference", "Explanation": "explanation"}
LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]+)((?:#[^)\s]*)?\))")
IN_NAV = ("CONTRIBUTING.md", "CHANGELOG.md")
INSIDE = "repository"


def on_config(config: Any) -> Any:
    """Sections for readers first; records of the project's own work stand apart."""
    nav: list[dict[str, Any]] = []
    for name, folder in SECTIONS.items():
        pages: list[Any] = [_entry(path) for path in sorted((DOCS / folder).glob("*.md"), key=_title)]
        nav.append({name: ["README.md", *pages] if name == "Start" else pages})
    records = [_entry(path) for path in sorted((DOCS / "decisions").glob("*.md"))]
    logs = [_entry(path) for path in sorted(DOCS.glob("*.md")) if path.name != "README.md"]
    nav.append({"Project": [_title_of("CONTRIBUTING.md"), _title_of("CHANGELOG.md"), *logs, {"Decisions": records}]})
    config["nav"] = nav
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds what pages link to outside of docs/: Markdown as it is, other text as code, folders as lists."""
    wanted = set(IN_NAV)
    seen: set[str] = set()
    while wanted - seen:
        for name in sorted(wanted - seen):
            seen.add(name)
            text = _page_of(ROOT / name)
            wanted |= set(_outside(PurePosixPath(INSIDE, name), text))
            level = InclusionLevel.INCLUDED if name in IN_NAV else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, _uri(name), content=text, inclusion=level))
        for path in DOCS.rglob("*.md"):
            wanted |= set(_outside(PurePosixPath(path.relative_to(DOCS)), path.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turns links that lead out of docs/ to the pages made above, and links to folders of docs/ to their first page."""
    here = PurePosixPath(page.file.src_uri)

    def turned(found: re.Match[str]) -> str:
        target = _target(here, found[2])
        if target is None or (here.parts[0] != INSIDE and target == _plain(here, found[2])):
            return found.group()
        return f"{found[1]}{'../' * (len(here.parts) - 1)}{target}{found[3]}"

    return LINK.sub(turned, markdown)


def _plain(page: PurePosixPath, link: str) -> str:
    """Where MkDocs itself takes a link to."""
    path = _resolved(page, link)
    return str(path.relative_to(DOCS)) if path.is_relative_to(DOCS) else ""


def _target(page: PurePosixPath, link: str) -> str | None:
    """Where a link of a page leads on the site; None: where it says."""
    path = _resolved(page, link)
    if path.is_relative_to(DOCS):
        inside = path.relative_to(DOCS)
        return f"{inside}/{min(each.name for each in path.glob('*.md'))}" if path.is_dir() else str(inside)
    return _uri(str(path.relative_to(ROOT))) if path.is_relative_to(ROOT) else None


def _resolved(page: PurePosixPath, link: str) -> Path:
    """The file of the repository that a link means; pages under `repository/` stand where their file does."""
    parts = page.parts
    base = ROOT.joinpath(*parts[1:-1]) if parts[0] == INSIDE else DOCS.joinpath(*parts[:-1])
    return (base / link).resolve()


def _outside(page: PurePosixPath, text: str) -> list[str]:
    """Files outside of docs/ that a page links to."""
    paths = [_resolved(page, found[2]) for found in LINK.finditer(text)]
    return [
        str(path.relative_to(ROOT))
        for path in paths
        if path.exists() and path.is_relative_to(ROOT) and not path.is_relative_to(DOCS)
    ]


def _uri(name: str) -> str:
    return f"{INSIDE}/{name}" if name.endswith(".md") else f"{INSIDE}/{name.rstrip('/')}.md"


def _page_of(path: Path) -> str:
    """A page that shows a file or folder."""
    name = path.relative_to(ROOT)
    if path.is_dir():
        listed = "\n".join(
            f"- `{each.name}`" for each in sorted(path.iterdir()) if not each.name.startswith((".", "_"))
        )
        return f"# {name}/\n\nIn the repository:\n\n{listed}\n"
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {name}\n\n```{path.suffix.removeprefix('.')}\n{text}```\n"


def _entry(path: Path) -> dict[str, str]:
    return {_title(path): path.relative_to(DOCS).as_posix()}


def _title(path: Path) -> str:
    """The page's first heading."""
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _title_of(name: str) -> dict[str, str]:
    return {_title(ROOT / name): _uri(name)}
