//! No circles: among the modules side by side in a folder, imports lead in one direction only.
//!
//! `floors.rs` orders the modules at the top of a crate. This finds circles at every depth, in every crate and in the
//! Python package, without a list. A module and those below it count as one: what a module defines is there for its
//! children, and what they define is there for it.

mod source;

use std::collections::{BTreeMap, BTreeSet};

use source::{Import, Modules, Names};

const CRATES: &[&str] = &[
    "rust/queue/src",
    "rust/proto/src",
    "rust/core/src",
    "rust/log/src",
    "rust/pipeline/src",
    "rust/discovery/src",
    "rust/py/src",
];

#[test]
fn no_circles_in_the_crates() {
    let found: Vec<String> = CRATES
        .iter()
        .flat_map(|folder| {
            let modules = source::rust::modules(folder);
            assert!(!modules.is_empty(), "no modules in {folder}");
            circles(&modules, |names| source::rust::imports(names, &modules))
        })
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_circles_in_the_python_package() {
    let modules = source::python::modules("python/zeroxide");
    assert!(modules.len() > 50);
    let found = circles(&modules, |names| source::python::imports(names, &modules));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Which child of a module imports from which of its other children, and where.
type Neighbours = BTreeMap<String, BTreeMap<String, String>>;

/// Describes every circle among modules with the same parent.
fn circles(modules: &Modules, imports: impl Fn(&Names) -> Vec<Import>) -> Vec<String> {
    let mut parents: BTreeMap<Names, Neighbours> = BTreeMap::new();
    for (names, module) in modules {
        for Import { line, from } in imports(names) {
            let common = names.iter().zip(&from).take_while(|(a, b)| a == b).count();
            let (Some(own), Some(other)) = (names.get(common), from.get(common)) else {
                continue; // a parent and its child
            };
            let neighbours = parents.entry(names[..common].to_vec()).or_default();
            let place = format!("{}:{line} imports from {}", module.file, from.join("/"));
            let from_own = neighbours.entry(own.clone()).or_default();
            from_own.entry(other.clone()).or_insert(place);
        }
    }
    parents.values().flat_map(circles_among).collect()
}

fn circles_among(neighbours: &Neighbours) -> Vec<String> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = neighbours
        .keys()
        .map(|name| (name, reachable(name, neighbours)))
        .collect();
    let leads = |from: &String, to: &String| reach.get(from).is_some_and(|all| all.contains(to));
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for name in neighbours.keys().filter(|name| leads(name, name)) {
        if !told.insert(name) {
            continue;
        }
        let circle = neighbours
            .keys()
            .filter(|other| leads(name, other) && leads(other, name));
        let circle: BTreeSet<&String> = circle.collect();
        told.extend(&circle);
        let mut lines = vec![format!("a circle of {circle:?}:")];
        for one in &circle {
            let inside = neighbours[*one]
                .iter()
                .filter(|(to, _)| circle.contains(to));
            lines.extend(inside.map(|(_, place)| format!("  {place}")));
        }
        found.push(lines.join("\n"));
    }
    found
}

fn reachable<'a>(start: &String, neighbours: &'a Neighbours) -> BTreeSet<&'a String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(name) = open.pop() {
        for next in neighbours.get(name).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

#[test]
fn a_circle_is_found_at_its_depth_and_no_other() {
    let modules: Modules = ["a", "a/b", "a/c", "a/d", "e"]
        .map(|path| {
            let names: Names = path.split('/').map(str::to_owned).collect();
            let module = source::Module {
                file: format!("{path}.rs"),
                text: match path {
                    "a" => "use b::B;",
                    "a/b" => "use super::c::{C, D};",
                    "a/c" => "use super::{d::E, A};\nuse crate::e;",
                    "a/d" => "use super::B;",
                    _ => "",
                }
                .to_owned(),
            };
            (names, module)
        })
        .into_iter()
        .collect();
    let found = circles(&modules, |names| source::rust::imports(names, &modules));
    let expected = r#"a circle of {"b", "c", "d"}:
  a/b.rs:1 imports from a/c
  a/c.rs:1 imports from a/d
  a/d.rs:1 imports from a/b"#;
    assert_eq!(found, [expected]);
}
