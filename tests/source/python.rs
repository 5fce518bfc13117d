//! Imports of Python files.

use super::{Import, Modules, Names, identifier, module_of};

/// The modules of a package.
pub fn modules(folder: &str) -> Modules {
    super::modules_of(folder, "py", &["__init__"])
}

/// Lists the imports of other modules of the package that happen when a module runs, without those for types only. Imports
/// inside functions count.
pub fn imports(names: &Names, modules: &Modules) -> Vec<Import> {
    let module = &modules[names];
    let is_package = module.file.ends_with("__init__.py");
    let mut found = Vec::new();
    let mut types_only = None;
    for (number, code) in logical_lines(&module.text) {
        let indent = code.len() - code.trim_start().len();
        if code.trim().is_empty() || types_only.is_some_and(|outer| indent > outer) {
            continue;
        }
        types_only = code.trim().ends_with("TYPE_CHECKING:").then_some(indent);
        let words: Vec<&str> = code
            .split([' ', ',', '(', ')'])
            .filter(|word| !word.is_empty())
            .collect();
        let paths: Vec<Names> = match words.as_slice() {
            ["from", origin, "import", imported @ ..] => {
                let Some(base) = absolute(origin, names, is_package) else {
                    continue;
                };
                let below = imported.iter().take_while(|name| **name != "as");
                below
                    .map(|name| base.iter().cloned().chain([(*name).to_owned()]).collect())
                    .collect()
            }
            ["import", path, ..] => absolute(path, names, is_package).into_iter().collect(),
            _ => continue,
        };
        found.extend(paths.into_iter().map(|path| Import {
            line: number + 1,
            from: module_of(&path, modules),
        }));
    }
    found
}

/// A module's name from the package's root, if it is one of the package's.
fn absolute(origin: &str, names: &Names, is_package: bool) -> Option<Names> {
    let split = |path: &str| {
        path.split('.')
            .filter(|n| !n.is_empty())
            .map(identifier)
            .collect()
    };
    let dots = origin.len() - origin.trim_start_matches('.').len();
    if dots == 0 {
        let path = origin.strip_prefix("zeroxide")?;
        let is_ours = path.is_empty() || path.starts_with('.');
        return is_ours.then(|| split(path));
    }
    let climbs = dots - usize::from(is_package);
    let kept = names.len().checked_sub(climbs)?;
    let below: Names = split(origin);
    Some(names[..kept].iter().cloned().chain(below).collect())
}

/// The lines of a Python file without comments, an import in parentheses as one.
pub fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        match lines.last_mut() {
            Some((_, import)) if is_open => import.push_str(code),
            _ => lines.push((number, code.to_owned())),
        }
        let starts = code.trim_start().starts_with("from ") && code.contains('(');
        is_open = (is_open || starts) && !code.contains(')');
    }
    lines
}
