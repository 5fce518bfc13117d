//! Makes the docstrings of the extension module from its stub, `python/zeroxide/_native.pyi`.
//!
//! Editors and type checkers read the stub, `help()` reads the module. The text is written once, in the stub; this
//! generates the macro `text!`, which stands for it in the sources: `#[doc = text!(Socket::send)]`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

const STUB: &str = "python/zeroxide/_native.pyi";
const QUOTES: &str = "\"\"\"";

fn main() {
    let stub = stub();
    println!("cargo::rerun-if-changed={}", stub.display());
    let stub = fs::read_to_string(&stub).unwrap_or_else(|error| panic!("{STUB}: {error}"));
    let arms: String = docstrings(&stub)
        .iter()
        .map(|(name, text)| format!("    ({name}) => {{ {text:?} }};\n"))
        .collect();
    let folder = env::var_os("OUT_DIR").map(PathBuf::from);
    let file = Path::new(&folder.expect("cargo sets OUT_DIR")).join("text.rs");
    let code = format!("macro_rules! text {{\n{arms}}}\n");
    fs::write(&file, code).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// The path of the stub. Two packages have this source, and so this program.
fn stub() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.expect("cargo sets CARGO_MANIFEST_DIR");
    let mut stubs = package.ancestors().map(|folder| folder.join(STUB));
    let found = stubs.find(|stub| stub.is_file());
    found.unwrap_or_else(|| panic!("no folder above {} has {STUB}", package.display()))
}

/// The docstrings of classes, functions, methods and attributes by name: `proxy`, `Socket`, `Socket::send`.
fn docstrings(stub: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut class = None;
    // The item to which a docstring on the next line belongs.
    let mut name: Option<String> = None;
    let mut in_signature = false;
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let (indent, code) = (indent_of(line), line.trim());
        if in_signature {
            in_signature = !ends_signature(code);
        } else if let Some(head) = code.strip_prefix("class ").filter(|_| indent == 0) {
            class = Some(identifier(head));
            name = class.map(str::to_owned);
        } else if let Some(head) = code.strip_prefix("def ") {
            class = class.filter(|_| indent > 0);
            name = Some(qualified(class, identifier(head)));
            in_signature = !ends_signature(code);
        } else if let Some(start) = code
            .strip_prefix('r')
            .filter(|text| text.starts_with(QUOTES))
            .or(Some(code))
            .and_then(|text| text.strip_prefix(QUOTES))
        {
            let text = docstring(start, &mut lines);
            assert!(
                code.starts_with('r') || !text.contains('\\'),
                "a docstring with a backslash begins with r{QUOTES}: {start}"
            );
            if let Some(name) = name.take() {
                let former = found.insert(name.clone(), text);
                assert!(former.is_none(), "{name} has two docstrings");
            }
        } else if !code.is_empty() {
            let attribute = identifier(code);
            let is_attribute = code[attribute.len()..].starts_with(':') && !attribute.is_empty();
            class = class.filter(|_| indent > 0);
            name = is_attribute.then(|| qualified(class, attribute));
        }
    }
    found
}

fn qualified(class: Option<&str>, name: &str) -> String {
    class.map_or(name.to_owned(), |class| format!("{class}::{name}"))
}

fn identifier(code: &str) -> &str {
    let end = code.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
    &code[..end.unwrap_or(code.len())]
}

/// Whether a line is the last of a function's head: `def f() -> int: ...`, or `) -> int:` under the parameters.
fn ends_signature(code: &str) -> bool {
    let code = code.split("  #").next().unwrap_or(code).trim_end();
    code.ends_with(':') || code.ends_with("...")
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A docstring without its indentation, as `inspect.cleandoc` returns it.
fn docstring<'a>(start: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    if let Some(text) = start.strip_suffix(QUOTES) {
        return text.trim().to_owned();
    }
    let mut rest = Vec::new();
    for line in lines {
        if let Some(last) = line.trim_end().strip_suffix(QUOTES) {
            rest.push(last);
            break;
        }
        rest.push(line);
    }
    let filled = rest.iter().filter(|line| !line.trim().is_empty());
    let margin = filled.map(|line| indent_of(line)).min().unwrap_or(0);
    let mut text = start.trim().to_owned();
    for line in rest {
        text.push('\n');
        text.push_str(line.get(margin..).unwrap_or("").trim_end());
    }
    text.trim_end().to_owned()
}
