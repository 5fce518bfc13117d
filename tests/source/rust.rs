//! Imports of Rust files.

use std::collections::BTreeMap;

use super::{Import, Module, Modules, Names, identifier, module_of};

/// The modules of a crate, without those that only its tests have.
pub fn modules(folder: &str) -> Modules {
    let mut modules = super::modules_of(folder, "rs", &["lib", "mod"]);
    let mut tests: Vec<Names> = Vec::new();
    for (names, module) in &modules {
        let mut lines = module.text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if line == "#[cfg(test)]"
                && let Some(next) = lines.peek()
                && let Some(name) = next.split_once("mod ").map(|(_, rest)| identifier(rest))
            {
                tests.push(names.iter().cloned().chain([name]).collect());
            }
        }
    }
    modules.retain(|names, _| !tests.iter().any(|test| names.starts_with(test)));
    modules
}

/// Lists the imports of other modules of the crate. A name that a module only passes on counts as an import from
/// where it is defined.
pub fn imports(names: &Names, modules: &Modules) -> Vec<Import> {
    paths(names, &modules[names].text)
        .into_iter()
        .map(|(line, path)| Import {
            line,
            from: home(path, modules),
        })
        .collect()
}

/// The module that defines what `path` leads to.
fn home(path: Names, modules: &Modules) -> Names {
    let mut path = path;
    for _ in 0..8 {
        let module = module_of(&path, modules);
        let Some(name) = path.get(module.len()) else {
            return module;
        };
        match passed_on(&module, &modules[&module], modules).remove(name) {
            Some(further) => path = further,
            None => return module,
        }
    }
    panic!("{path:?} leads in a circle");
}

/// The names that a module takes from its children, and where they come from.
fn passed_on(names: &Names, module: &Module, modules: &Modules) -> BTreeMap<String, Names> {
    let mut found = BTreeMap::new();
    let code = code(&module.text);
    for (at, _) in code.match_indices("use ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(end) = code[at..].find(';') else {
            continue;
        };
        let text = &code[at + "use ".len()..at + end];
        for mut path in expand(text.strip_prefix("self::").unwrap_or(text)) {
            let child: Names = names.iter().cloned().chain(path.first().cloned()).collect();
            if modules.contains_key(&child)
                && path.len() > 1
                && let Some(name) = path.last().cloned()
            {
                path.splice(0..0, names.iter().cloned());
                found.insert(name, path);
            }
        }
    }
    found
}

/// Every path in a file that begins at the crate's root, at a parent, or at the module itself: in full, with its line.
fn paths(names: &Names, text: &str) -> Vec<(usize, Names)> {
    let code = code(text);
    let mut found = Vec::new();
    for prefix in ["crate::", "super::"] {
        for (at, _) in code.match_indices(prefix) {
            if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue; // inside a longer path
            }
            let mut rest = &code[at..];
            let mut base = names.clone();
            if let Some(path) = rest.strip_prefix("crate::") {
                (base, rest) = (Names::new(), path);
            }
            let mut climbed = 0;
            while let Some(path) = rest.strip_prefix("super::") {
                (climbed, rest) = (climbed + 1, path);
            }
            if climbed > base.len() {
                continue; // from a module inside the file
            }
            base.truncate(base.len() - climbed);
            let line = code[..at].matches('\n').count() + 1;
            for path in expand(rest) {
                found.push((line, base.iter().cloned().chain(path).collect()));
            }
        }
    }
    found
}

/// The paths in `a::{b, c::d}` or `a::b`, up to the end of the path. `x as y` is known as y.
fn expand(text: &str) -> Vec<Names> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start, mut found) = (0, 0, Vec::new());
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    found.extend(expand(&group[start..at]));
                    start = at + 1;
                    if character == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
        return found;
    }
    let name = identifier(text);
    let rest = &text[name.len()..];
    match rest.strip_prefix("::") {
        _ if name.is_empty() => Vec::new(),
        Some(rest) => {
            let longer = expand(rest).into_iter();
            let longer: Vec<Names> = longer
                .map(|path| [name.clone()].into_iter().chain(path).collect())
                .collect();
            match longer.is_empty() {
                true => vec![vec![name]],
                false => longer,
            }
        }
        None => vec![vec![name]],
    }
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let tests = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..tests]
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn paths_are_read_in_full() {
    let text = "use super::{a, b::{C, d::E}};\n// use super::comment;\nfn f() -> crate::x::Y {}\n\
                #[cfg(test)]\nmod tests { use super::t; }\n";
    let found = paths(&vec!["m".to_owned(), "n".to_owned()], text);
    let found: Vec<(usize, String)> = found
        .into_iter()
        .map(|(line, path)| (line, path.join("::")))
        .collect();
    let expected = [(3, "x::Y"), (1, "m::a"), (1, "m::b::C"), (1, "m::b::d::E")];
    assert_eq!(found, expected.map(|(line, path)| (line, path.to_owned())));
}
