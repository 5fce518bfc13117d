"""Runs the `console` blocks of the documentation and draws them: `python tools/terminal.py`.

A block holds commands after `$ `, and below each what it prints. All blocks of a page run from top to bottom in one empty
folder. A command that ends in `&` goes on until the end of the page, and what it prints is not shown. A block
with `title="NAME"` is also a picture, docs/terminal/NAME.svg. A test compares outputs and pictures; `--write` writes both
anew, after a change of a command. A block below `<!-- not run: WHY -->` is only drawn.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "terminal"

_BLOCK = re.compile(
    r'(?P<kept><!-- not run: [^>]*-->\n)?^```console(?: title="(?P<title>[\w-]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)

# How long a command may take, in seconds.
_PATIENCE = 60

_STYLE = (
    'text{font:13px ui-monospace,"DejaVu Sans Mono",monospace;fill:#d7dde4;white-space:pre}'
    ".prompt{fill:#ff9a62}.command{fill:#fff}.ground{fill:#1e2129}"
)
_LINE, _CHARACTER, _MARGIN = 19, 7.9, 14


def pages() -> list[Path]:
    """The pages with such blocks."""
    return [page for page in sorted(DOCS.rglob("*.md")) if _BLOCK.search(page.read_text())]


def played(text: str) -> str:
    """A page with what its commands print now."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        return _BLOCK.sub(lambda block: _play(block, folder, stack), text)


def _play(block: re.Match[str], folder: str, stack: ExitStack) -> str:
    if block["kept"]:
        return block[0]
    fence = block[0].partition("\n")[0]
    lines = []
    for command in _commands(block["text"]):
        lines.append(f"$ {command}\n")
        # Within a command, a backslash continues the line.
        if command.endswith("&"):
            _start(command.removesuffix("&"), folder, stack)
        else:
            lines.append(_run(command, folder))
    return f"{fence}\n{''.join(lines)}```"


def _commands(text: str) -> list[str]:
    commands: list[str] = []
    continues = False
    for line in text.splitlines():
        if continues:
            commands[-1] += f"\n{line}"
        elif line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
        continues = (continues or line.startswith("$ ")) and line.endswith("\\")
    return commands


def _environment() -> dict[str, str]:
    """Commands are those of this interpreter."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "COLUMNS": "100", "TZ": "UTC"}


def _start(command: str, folder: str, stack: ExitStack) -> None:
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(_PATIENCE)

    stack.callback(end)


def _run(command: str, folder: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_PATIENCE,
        check=False,
        text=True,
    )
    return done.stdout


def pictures(text: str) -> dict[str, str]:
    """The drawings of a page by their names."""
    return {
        block["title"]: draw(block["text"]) for block in _BLOCK.finditer(text) if block["title"]
    }


def draw(text: str) -> str:
    """A terminal as an SVG."""
    lines = text.expandtabs().splitlines()
    width = 2 * _MARGIN + max(map(len, lines)) * _CHARACTER
    height = 2 * _MARGIN + len(lines) * _LINE
    shapes = []
    for number, line in enumerate(lines):
        y = _MARGIN + (number + 1) * _LINE - 5
        shown = escape(line)
        if line.startswith("$ "):
            command = escape(line.removeprefix("$ "))
            shown = f'<tspan class="prompt">$ </tspan><tspan class="command">{command}</tspan>'
        shapes.append(f'<text x="{_MARGIN}" y="{y}" xml:space="preserve">{shown}</text>')
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" rx="8" class="ground"/>',
            *shapes,
            "</svg>",
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write outputs and pictures")
    write = parser.parse_args().write
    stale = 0
    for page in pages():
        before = page.read_text()
        after = played(before)
        drawings = {FOLDER / f"{name}.svg": svg for name, svg in pictures(after).items()}
        for path, text in {page: after, **drawings}.items():
            if not path.exists() or path.read_text() != text:
                stale += 1
                print(f"{'written' if write else 'stale'}: {path.relative_to(DOCS)}")
                if write:
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text)
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main())
