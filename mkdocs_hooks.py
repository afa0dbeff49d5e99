"""Makes the site from the repository: pages at the root join it, links to code become text."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live at the root of the repository."""
    root = Path(config.config_file_path).parent
    for source, page in ROOT_PAGES.items():
        text = (root / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Follow root pages to where they are in the site; keep only the text of links to code."""

    def relink(link: re.Match[str]) -> str:
        text, target = link.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path.startswith("../"):
            return link[0]
        name = path.rpartition("/")[2]
        up = "../" * page.file.src_uri.count("/")
        if name in ROOT_PAGES:
            return f"[{text}]({up}{ROOT_PAGES[name]}{'#' + anchor if anchor else ''})"
        inside = (Path("docs", page.file.src_uri).parent / path).resolve()
        return link[0] if inside.is_relative_to(Path("docs").resolve()) else text

    return _LINK.sub(relink, markdown)
