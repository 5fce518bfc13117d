"""A hook for mkdocs: adds the version of the package, inlines the drawings, adds the names that the theme's parts
lack for screen readers, and fails if a page loads anything from another host.

An inlined drawing follows the reader's choice of light or dark. A file that the page refers to cannot.
"""

import re
import tomllib
from html import escape, unescape
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent
DIAGRAMS = ROOT / "docs" / "diagrams"

IMAGE = re.compile(r'<img alt="([^"]*)" src="(?:\.\./|\./)*diagrams/([\w-]+)\.svg"\s*/?>')
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]*"""
)
LINKED = re.compile(r"""<link\b[^>]*\bhref=["']?(?:https?:)?//[^>]*>""")

# For a section with a page of its own, the label that should name the list below it has an icon instead of text.
SECTION = re.compile(
    r"""aria-labelledby="__nav_[\d_]+_label"( aria-expanded="\w+">\s*<label class="md-nav__title" for="[^"]*">"""
    r"""\s*<span class="md-nav__icon md-icon"></span>\s*(?:<span class="md-ellipsis">\s*)?([^<]*?)\s*<)"""
)
SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'


def on_config(config: Any) -> Any:
    """Called by mkdocs before it builds."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    config.extra["release"] = workspace["package"]["version"]
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    # A header cell without text is not a heading.
    html = html.replace("<th></th>", "<td></td>")
    return IMAGE.sub(lambda image: drawing(image[2], unescape(image[1])), html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each finished page."""
    links = [link for link in LINKED.findall(output) if "canonical" not in link]
    if loaded := FETCHED.findall(output) + links:
        raise PluginError(f"{page.file.src_path} loads something from elsewhere: {loaded[0]}")
    output = SECTION.sub(r'aria-label="\2"\1', output)
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def drawing(name: str, description: str) -> str:
    """The drawing without its own colours, which docs/assets/site.css replaces."""
    source = (DIAGRAMS / f"{name}.svg").read_text()
    source = re.sub(r"<style>.*?</style>\n?", "", source, flags=re.DOTALL)
    label = f'<svg class="diagram" role="img" aria-label="{escape(description)}"'
    # HTML may have empty or indented lines, but Markdown would misread them; so the drawing becomes one line.
    return label + "".join(line.strip() for line in source.splitlines()).removeprefix("<svg")
