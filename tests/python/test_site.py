"""The built documentation site: it works from disk, and no page loads anything from elsewhere."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import headless
import pytest
from test_docs import OPTIONAL, looked_up, references

pytestmark = pytest.mark.zeroxide_only

ROOT = Path(__file__).parents[2]
PATIENCE = 100


def tool(name: str) -> ModuleType:
    """A module of tools/, which is not a package."""
    description = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert description is not None and description.loader is not None
    module = module_from_spec(description)
    description.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert built.returncode == 0, built.stderr
    return folder


def test_search_works_from_disk(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    options += ["--virtual-time-budget=20000", f"--user-data-dir={tmp_path}", "--dump-dom"]
    page = f"file://{site}/index.html?q=high-water"
    shown = subprocess.run(
        [browser, *options, page], capture_output=True, text=True, timeout=PATIENCE
    ).stdout
    assert re.search(r"\d+ matching documents", shown)
    assert 'href="topics/hwm.html?h=high+water"' in shown.replace(f"file://{site}/", "")


PAGES = ("index", "start", "options", "benchmarks", "api/poll")


@pytest.mark.timeout(300)  # a page is loaded eight times
@pytest.mark.parametrize("page", PAGES)
def test_pages_are_accessible(site: Path, page: str) -> None:
    pytest.importorskip("axe_core_python")
    if what := headless.missing():
        pytest.skip(what)
    browser = headless.Browser()
    try:
        for look in browser.looks():
            browser.open(f"file://{site}/{page}.html")
            # The theme keeps the first scheme that it has seen.
            browser.run("localStorage.clear(); location.reload()")
            ready = (
                "return document.readyState == 'complete' && document.body.dataset.mdColorScheme"
            )
            scheme = "slate" if look.endswith("dark") else "default"
            browser.until_equal(ready, scheme)
            browser.until("return !document.querySelector('pre:not(:has(nav))')", bool)
            assert browser.faults() == [], look
    finally:
        browser.close()


def test_every_page_can_be_edited(site: Path) -> None:
    for source in (ROOT / "docs").rglob("*.md"):
        path = source.relative_to(ROOT)
        page = (site / path.relative_to("docs")).with_suffix(".html").read_text()
        assert f"/edit/main/{path}" in page, path


def test_the_reference_shows_public_names_only(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        text = re.sub(r"<[^>]*>", "", page.read_text())
        private = re.findall(r".*(?:\b_native\.|zeroxide\._).*", text)
        assert private == [], page.name


def members(cls: type) -> dict[str, object]:
    """The public members that a class has of this package: methods, properties and declared attributes."""
    found: dict[str, object] = {}
    # A TypedDict is not among its own bases.
    for base in dict.fromkeys([*reversed(cls.__mro__), cls]):
        if base.__module__.partition(".")[0] == "zeroxide":
            own = dict.fromkeys(inspect.get_annotations(base)) | vars(base)
            found |= {name: own[name] for name in own if not name.startswith("_")}
    return found


def test_the_reference_shows_the_members_of_each_class(site: Path, zmq) -> None:
    """What a class inherits may be shown with another class of the reference, but not what it defines."""
    for module in OPTIONAL.values():
        pytest.importorskip(module)
    shown = set()
    for page in (site / "api").glob("*.html"):
        shown |= set(re.findall(r'id="(zeroxide[\w.]*)"', page.read_text()))
    values = {path: looked_up(path) for path in references()}
    classes = {path: value for path, value in values.items() if inspect.isclass(value)}
    assert len(classes) > 80
    # The page "Options" lists the options.
    options = {*zmq.SocketOption.__members__, *zmq.ContextOption.__members__}
    missing = []
    for path, cls in classes.items():
        bases = [other for other, base in classes.items() if base in cls.__mro__]
        attributes = (cls.__doc__ or "").partition("Attributes:")[2]
        table = set(re.findall(r"^ +(\w+): ", attributes, re.MULTILINE))
        all_members = members(cls)
        there = {
            name
            for name in all_members
            if name in table
            or f"{path}.{name}" in shown
            or (name not in vars(cls) and any(f"{base}.{name}" in shown for base in bases))
        }
        texts = [all_members[name] for name in there if all_members[name] is not None]
        for name, value in all_members.items():
            is_alias = any(value is text for text in texts)
            if name not in there and not is_alias and name.upper() not in options:
                missing.append(f"{path}.{name}")
    assert missing == []


def test_the_reference_shows_examples_without_their_fences(site: Path) -> None:
    pages = [*(site / "api").glob("*.html")]
    assert [page.name for page in pages if "```" in page.read_text()] == []


def test_the_reference_shows_the_fields_of_what_stats_returns(site: Path) -> None:
    """These dicts exist only for type checkers."""
    page = (site / "api" / "socket.html").read_text()
    stub = ast.parse((ROOT / "python" / "zeroxide" / "_native.pyi").read_text())
    for name in ("SocketStats", "PeerStats", "Dropped"):
        [cls] = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name]
        fields = [ast.unparse(node.target) for node in cls.body if isinstance(node, ast.AnnAssign)]
        assert len(fields) > 9
        for field in fields:
            assert f'id="zeroxide._native.{name}.{field}"' in page, f"{name}.{field}"


def test_pages_show_the_version(site: Path) -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    page = (site / "sockets" / "req.html").read_text()
    assert f'md-source__fact--version">{version[1]}<' in page


def test_diagrams_are_what_the_tool_draws() -> None:
    """Do not edit a drawing by hand: `python tools/diagrams.py` would undo it."""
    diagrams = tool("diagrams")
    drawn = {f"{name}.svg": draw().svg() for name, draw in diagrams.DRAWINGS.items()}
    assert drawn == {path.name: path.read_text() for path in diagrams.FOLDER.iterdir()}


def test_pages_show_and_describe_the_diagrams() -> None:
    image = re.compile(r"!\[([^\]]*)\]\([./]*diagrams/([\w-]+)\.svg\)")
    shown = {page: image.findall(page.read_text()) for page in (ROOT / "docs").rglob("*.md")}
    for page, images in shown.items():
        assert all(len(description) > 60 for description, _ in images), page
    assert {name for images in shown.values() for _, name in images} == set(
        tool("diagrams").DRAWINGS
    )
    for page in (ROOT / "docs" / "sockets").glob("*.md"):
        assert shown[page], page


def test_diagrams_follow_the_scheme_of_the_reader(site: Path) -> None:
    page = (site / "sockets" / "req.html").read_text()
    drawing = re.search(r'<svg class="diagram" role="img" aria-label="[^"]+".*?</svg>', page)
    assert drawing is not None and "<style>" not in drawing[0]
    styled = (ROOT / "docs" / "assets" / "site.css").read_text()
    for kind in set(re.findall(r"class='(\w+)'", drawing[0])):
        assert f".{kind} {{" in styled, kind


def luminance(colour: str) -> float:
    """Returns the luminance of a colour such as #rrggbb, by WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# The background colours of the theme, for pages and code.
GROUNDS = {"default": ("#ffffff", "#f5f5f5"), "slate": ("#1e2129", "#272a35")}


@pytest.mark.parametrize("scheme", GROUNDS)
def test_colours_reach_the_contrast_of_wcag_aa(scheme: str) -> None:
    sheet = (ROOT / "docs" / "assets" / "site.css").read_text()
    rule = re.search(rf'\[data-md-color-scheme="{scheme}"\] {{(.*?)}}', sheet, re.DOTALL)
    assert rule is not None
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rule[1]))

    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(one), luminance(other)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    page, code = GROUNDS[scheme]
    pairs = [(name, code if "code" in name else page) for name in colours if "-fg-" in name]
    pairs += [(name, code) for name in colours if "code-hl" in name]
    pairs += [("md-typeset-a-color", page), ("md-primary-bg-color", colours["md-primary-fg-color"])]
    pairs += [
        (f"diagram-{text}", ground)
        for text in ("ink", "pale")
        for ground in (page, colours["diagram-box"], colours["diagram-store"])
    ]
    for name, ground in pairs:
        if not name.startswith(("md-primary-fg", "md-footer")):
            assert contrast(colours[name], ground) >= 4.5, (name, ground)
    for name in ("diagram-line", "diagram-flow"):
        assert contrast(colours[name], page) >= 3, name


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://unpkg.com/iframe-worker/shim"></script>',
        '<img alt="stars" src="//img.shields.io/badge">',
        '<link rel="stylesheet" href="https://fonts.googleapis.com/css?family=Roboto">',
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_an_error(element: str) -> None:
    exceptions = pytest.importorskip("mkdocs.exceptions")
    docs_site = tool("docs_site")
    page = SimpleNamespace(file=SimpleNamespace(src_path="page.md"))
    link = '<link rel="canonical" href="https://zeroxide.github.io/"><a href="https://x.org">x</a>'
    assert docs_site.on_post_page(link, page) == link
    with pytest.raises(exceptions.PluginError, match=r"page\.md loads something from elsewhere"):
        docs_site.on_post_page(link + element, page)
