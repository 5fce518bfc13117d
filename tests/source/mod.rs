//! Reads the imports of the project's own source files.
#![allow(dead_code, reason = "each test program uses its part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub mod python;
pub mod rust;

/// The names from the root of a crate or package down to a module.
pub type Names = Vec<String>;

/// A source file that is a module.
pub struct Module {
    /// From the root of the repository.
    pub file: String,
    pub text: String,
}

pub type Modules = BTreeMap<Names, Module>;

/// A module that a file imports from, and the line that does so.
pub struct Import {
    pub line: usize,
    pub from: Names,
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder with this extension.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The identifier that a text begins with.
pub fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// The modules of a folder; `facade` is the file that stands for its folder.
fn modules_of(folder: &str, extension: &str, facades: &[&str]) -> Modules {
    let source = root().join(folder);
    files(&source, extension)
        .into_iter()
        .map(|path| {
            let relative = path.strip_prefix(&source).expect("found below it");
            let mut names: Names = relative
                .with_extension("")
                .components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect();
            names.pop_if(|name| facades.contains(&name.as_str()));
            let module = Module {
                file: format!("{folder}/{}", relative.display()),
                text: fs::read_to_string(&path).expect("readable source"),
            };
            (names, module)
        })
        .collect()
}

/// The longest part of `path` that is a module.
fn module_of(path: &[String], modules: &Modules) -> Names {
    let mut names = path.to_vec();
    while !names.is_empty() && !modules.contains_key(&names) {
        names.pop();
    }
    names
}
