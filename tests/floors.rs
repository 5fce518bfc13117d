//! Imports point down: the floors of the house, and a failing test for a staircase built the other way.
//!
//! Cargo refuses a circle between crates; nothing but this refuses one between the modules of a crate, or of the
//! Python package. A new module is one name in one of the lists below. `circles.rs` checks the inside of modules.

mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use source::python::logical_lines;
use source::{files, identifier, root};

/// The allowed dependencies between the workspace's crates, by folder.
const CRATES: &[(&str, &[&str])] = &[
    ("rust/queue", &[]),
    ("rust/proto", &[]),
    (".", &["zeroxide-queue", "zeroxide-proto"]),
    ("rust/log", &[]),
    ("rust/pipeline", &["zeroxide", "zeroxide-log"]),
    ("rust/discovery", &["zeroxide"]),
    (
        "rust/py",
        &[
            "zeroxide",
            "zeroxide-queue",
            "zeroxide-log",
            "zeroxide-pipeline",
        ],
    ),
];

/// The modules of rust/core, lowest line first. A module may import from the lines below its own, not from its own.
const CORE: &[&[&str]] = &[
    &["json", "sys"],
    &["error"],
    &["access", "undelivered"],
    &["options"],
    &["pace"],
    &["signal", "resolver", "spill"],
    &["reactor"],
    &["pipe"],
    &["budget"],
    &["patterns"],
    &["monitor"],
    &["port"],
    &["command"],
    &["mailbox"],
    &["io_thread"],
    &["transports"],
    &["registry"],
    &["zap"],
    &["connecter"],
    &["session"],
    &["listener"],
    &["socket"],
    &["poller", "watcher"],
    &["proxy"],
    &["capabilities", "mechanisms"],
    &["context"],
    &["observer"],
    &["binding"],
    &["fuzzing"],
];

/// The modules of rust/log, in the same way.
const LOG: &[&[&str]] = &[
    &["disk"],
    &["columns", "table", "private"],
    &["error"],
    &["layout", "place"],
    &["batch", "ipc"],
    &["builder"],
    &["convert", "frame"],
    &["fetched", "book"],
    &["segment", "lock", "generations"],
    &["snapshot", "shared", "prepared"],
    &["recovery", "reader"],
    &["log"],
];

/// The modules of rust/pipeline, in the same way.
const PIPELINE: &[&[&str]] = &[
    &["wire", "wake", "clock", "threads"],
    &["link"],
    &["client"],
    &["reader", "collector", "producer"], // blind to each other
    &["fuzzing", "simulation"],
];

/// The modules of rust/discovery, in the same way.
const DISCOVERY: &[&[&str]] = &[
    &["id", "interfaces"],
    &["wire", "event", "election"],
    &["beacon", "gossip", "services", "names"], // blind to each other
    &["machine"],
    &["driver"],
    &["node"],
    &["follow"],
    &["lookup"],
];

/// The modules of python/zeroxide, lowest line first. `__init__` holds the public names; modules above it use the
/// package like any program.
const PYTHON: &[&[&str]] = &[
    &["_exports", "_hints", "_lags", "_sizes"],
    &[
        "_arguments",
        "_checks",
        "_native",
        "_optional",
        "_typing",
        "_closing",
        "_last_turns",
        "_undelivered",
    ],
    &["_constant_texts", "_option_names"],
    &["_enums"],
    &["constants", "version"],
    &["error", "_overridden"],
    &[
        "frame",
        "_options",
        "_stopwatch",
        "_turns",
        "_tasks",
        "_typed",
        "_cautions",
        "_observing",
    ],
    &["_tracker", "events", "as_zmq", "_futures"],
    &["_pickles", "_both"],
    &["_option_calls", "_objects"],
    &["_tables"],
    &["socket"],
    &["_waiting", "_socket_contexts"],
    &["context", "poll", "monitor", "proxy"],
    &["decorators", "utils", "_async_poller"],
    &["_future"],
    &["__init__"],
    &["asyncio", "log", "metrics", "ssh", "eventloop"],
    &["pipeline", "patterns", "discovery"],
    &["green"],
    &["auth", "curve_keygen", "devices", "port"],
    &["collector", "_compat"],
    &["spark", "cli"],
    &["__main__"],
];

#[test]
fn core_modules_import_down() {
    no_rust_module_imports_up("rust/core/src", CORE);
}

#[test]
fn log_modules_import_down() {
    no_rust_module_imports_up("rust/log/src", LOG);
}

#[test]
fn pipeline_modules_import_down() {
    no_rust_module_imports_up("rust/pipeline/src", PIPELINE);
}

#[test]
fn discovery_modules_import_down() {
    no_rust_module_imports_up("rust/discovery/src", DISCOVERY);
}

fn no_rust_module_imports_up(folder: &str, lines: &[&[&'static str]]) {
    let read = |text: &str, path: &Path| rust_imports(text, path.components().count());
    // lib.rs holds the public names: above everything.
    let wrong = complaints(folder, "rs", lines, &["lib"], read);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn python_modules_import_down() {
    let wrong = complaints("python/zeroxide", "py", PYTHON, &[], python_imports);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn crates_depend_down() {
    for (folder, allowed) in CRATES {
        let manifest =
            fs::read_to_string(root().join(folder).join("Cargo.toml")).expect("a manifest");
        for dependency in crate_dependencies(&manifest) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{folder}/Cargo.toml must not depend on {dependency}"
            );
        }
        let knows_python = manifest.lines().any(|line| line.starts_with("pyo3"));
        assert!(
            !knows_python || *folder == "rust/py",
            "{folder} knows Python"
        );
    }
}

/// A module that a file imports, and the line it does so on.
type Import = (usize, String);

/// Returns the forbidden imports of every file below `folder`.
fn complaints(
    folder: &str,
    extension: &str,
    lines: &[&[&'static str]],
    free: &[&str],
    read: impl Fn(&str, &Path) -> Vec<Import>,
) -> Vec<String> {
    let floors = Floors::new(lines);
    let source = root().join(folder);
    let mut wrong = Vec::new();
    for file in files(&source, extension) {
        let relative = file.strip_prefix(&source).expect("found below it");
        let first = Path::new(
            relative
                .components()
                .next()
                .expect("a file has a name")
                .as_os_str(),
        );
        let module = first
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy();
        // A test file may import from anywhere.
        if free.contains(&module.as_ref()) || relative.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable source");
        for (line, imported) in read(&text, relative) {
            if let Some(complaint) = floors.complaint(&module, &imported) {
                wrong.push(format!(
                    "{folder}/{}:{line}: {complaint}",
                    relative.display()
                ));
            }
        }
    }
    wrong
}

/// The floor of each module.
struct Floors(BTreeMap<&'static str, usize>);

impl Floors {
    fn new(lines: &[&[&'static str]]) -> Floors {
        let numbered = lines.iter().enumerate();
        Floors(
            numbered
                .flat_map(|(floor, names)| names.iter().map(move |name| (*name, floor)))
                .collect(),
        )
    }

    fn complaint(&self, module: &str, imported: &str) -> Option<String> {
        if module == imported {
            return None;
        }
        match (self.0.get(module), self.0.get(imported)) {
            (None, _) => Some(format!(
                "`{module}` has no floor; give it one in tests/floors.rs"
            )),
            (_, None) => Some(format!("imports `{imported}`, which has no floor")),
            (Some(own), Some(other)) if other < own => None,
            (Some(own), Some(other)) => Some(format!(
                "`{module}`, floor {own}, imports `{imported}`, floor {other}"
            )),
        }
    }
}

/// The first name on every path that starts at the crate's root, outside comments and tests. `depth` is 1 for
/// src/x.rs and 2 for src/x/y.rs: that many `super::` lead to the root as `crate::` does.
fn rust_imports(text: &str, depth: usize) -> Vec<Import> {
    let climbed = "super::".repeat(depth);
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line == "#[cfg(test)]"
            && lines
                .peek()
                .is_some_and(|(_, next)| next.starts_with("mod "))
        {
            break; // tests are at the bottom of a file, and may reach anywhere
        }
        let code = line.split("//").next().unwrap_or_default();
        for prefix in ["crate::", climbed.as_str()] {
            for (at, _) in code.match_indices(prefix) {
                if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue; // inside a longer path
                }
                let mut path = code[at + prefix.len()..].to_owned();
                while path.starts_with('{') && path.matches('{').count() > path.matches('}').count()
                {
                    let Some((_, more)) = lines.next() else { break };
                    path.push_str(more.split("//").next().unwrap_or_default());
                }
                let heads = if path.starts_with('{') {
                    group_heads(&path)
                } else {
                    vec![identifier(&path)]
                };
                found.extend(heads.into_iter().map(|head| (number + 1, head)));
            }
        }
    }
    found.retain(|(_, name)| !name.is_empty()); // `use super::*` of a module within the file
    found
}

/// The first names in `{a, b::c, d::{e, f}}`.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut start) = (0, Vec::new(), true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => start = true,
            c if start && !c.is_whitespace() => {
                heads.push(identifier(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    heads
}

/// The modules a Python file imports when it runs (not those it needs for types only).
fn python_imports(text: &str, relative: &Path) -> Vec<Import> {
    // `from .` in zeroxide/frame.py and `from ..` in zeroxide/spark/_sink.py mean the package.
    let dots = ".".repeat(relative.components().count());
    let is_module = |name: &str| PYTHON.iter().any(|floor| floor.contains(&name));
    let mut found = Vec::new();
    let mut types_only = None;
    for (number, code) in logical_lines(text) {
        let indent = code.len() - code.trim_start().len();
        if code.trim().is_empty() || types_only.is_some_and(|outer| indent > outer) {
            continue;
        }
        types_only = code.trim().ends_with("TYPE_CHECKING:").then_some(indent);
        let mut add = |name: &str| found.push((number + 1, name.to_owned()));
        let words: Vec<&str> = code
            .split([' ', ',', '(', ')'])
            .filter(|word| !word.is_empty())
            .collect();
        match words.as_slice() {
            // Names of the package itself: a module, or a name in `__init__`.
            ["from", origin, "import", names @ ..] if *origin == dots || *origin == "zeroxide" => {
                let heads = if names.is_empty() {
                    &["__init__"]
                } else {
                    names
                };
                heads
                    .iter()
                    .for_each(|name| add(if is_module(name) { name } else { "__init__" }));
            }
            ["from", origin, "import", ..] => {
                let path = origin
                    .strip_prefix("zeroxide.")
                    .or_else(|| origin.strip_prefix(dots.as_str()));
                path.filter(|path| !path.starts_with('.'))
                    .into_iter()
                    .for_each(|path| add(&identifier(path)));
            }
            ["import", "zeroxide", ..] => add("__init__"),
            ["import", path, ..] => path
                .strip_prefix("zeroxide.")
                .into_iter()
                .for_each(|path| add(&identifier(path))),
            _ => {}
        }
    }
    found
}

/// The zeroxide crates in a manifest's dependency tables; those that only tests need do not count.
fn crate_dependencies(manifest: &str) -> Vec<String> {
    let (mut counts, mut found) = (false, Vec::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.ends_with("dependencies]")
                && !line.starts_with("[dev-")
                && !line.starts_with("[workspace");
        } else if counts && line.starts_with("zeroxide") {
            found.push(
                line.split(['.', ' ', '='])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    found
}

fn names(imports: Vec<Import>) -> Vec<String> {
    imports.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn every_form_of_rust_import_is_seen() {
    let text = "use crate::pipe::Pipe;\nuse crate::{\n    error::{Error, Result},\n    socket,\n};\n// crate::comment\n\
                fn f() -> crate::context::Context { super::sys::now() }\nuse other_crate::x;\n\
                #[cfg(test)]\nmod tests { use crate::proxy; }\n";
    assert_eq!(
        names(rust_imports(text, 1)),
        ["pipe", "error", "socket", "context", "sys"]
    );
    assert_eq!(
        names(rust_imports(
            "use super::sibling;\nuse super::super::pipe;\n",
            2
        )),
        ["pipe"]
    );
}

#[test]
fn every_form_of_python_import_is_seen() {
    let text = "from . import _native, constants\nfrom .error import ZMQError\nimport zeroxide.spark\nimport os\n\
                import zeroxide as zmq\nif TYPE_CHECKING:\n    from .context import Context\nfrom zeroxide import Socket\n";
    let seen = names(python_imports(text, Path::new("frame.py")));
    assert_eq!(
        seen,
        [
            "_native",
            "constants",
            "error",
            "spark",
            "__init__",
            "__init__"
        ]
    );
    let nested = python_imports(
        "from .java import ensure\nfrom ..context import Context\n",
        Path::new("spark/x.py"),
    );
    assert_eq!(names(nested), ["context"]);
}

#[test]
fn imports_that_point_up_are_named() {
    let floors = Floors::new(CORE);
    assert!(floors.complaint("socket", "pipe").is_none());
    for (module, imported) in [
        ("pipe", "socket"),
        ("patterns", "transports"),
        ("pipe", "nowhere"),
        ("nowhere", "pipe"),
    ] {
        assert!(
            floors.complaint(module, imported).is_some(),
            "{module} imports {imported}"
        );
    }
}
