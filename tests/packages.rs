//! The packages for crates.io hold the source of each crate and what describes it, and no other file of the repository.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The crates that are published, with their folders and the files beside their source.
const CRATES: &[(&str, &str, &[&str])] = &[
    ("zeroxide-queue", "rust/queue", &["README.md", "SAFETY.md"]),
    ("zeroxide-proto", "rust/proto", &["README.md"]),
    ("zeroxide-log", "rust/log", &["README.md"]),
    ("zeroxide-pipeline", "rust/pipeline", &["README.md"]),
    ("zeroxide-discovery", "rust/discovery", &["README.md"]),
    ("zeroxide", ".", &["rust/core/README.md"]),
];

/// In every package: the licences ask to be part of each copy, and cargo adds the rest.
const ALWAYS: &[&str] = &[
    "LICENSE-APACHE",
    "LICENSE-MIT",
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn packages_hold_the_source_and_what_describes_it() {
    for (name, folder, beside) in CRATES {
        let listed = Command::new(env!("CARGO"))
            .args([
                "package",
                "--list",
                "--allow-dirty",
                "--offline",
                "-p",
                name,
            ])
            .current_dir(root())
            .output()
            .expect("cargo");
        let errors = String::from_utf8_lossy(&listed.stderr);
        assert!(listed.status.success(), "{name}: {errors}");
        let listed = String::from_utf8(listed.stdout).expect("paths are text");
        let listed: Vec<&str> = listed.lines().collect();
        for file in ALWAYS.iter().chain(*beside) {
            assert!(listed.contains(file), "{name} lacks {file}");
        }
        let (source, examples) = match *folder {
            "." => ("rust/core/src/", "examples/"),
            _ => ("src/", "\0"),
        };
        assert!(listed.contains(&&*format!("{source}lib.rs")), "{name}");
        for file in listed {
            let is_code = file.starts_with(source) || file.starts_with(examples);
            let is_known = is_code && Path::new(file).extension().is_some_and(|end| end == "rs");
            assert!(
                is_known || ALWAYS.contains(&file) || beside.contains(&file),
                "{name} would be published with {file}: see include in {folder}/Cargo.toml"
            );
        }
    }
}

#[test]
fn manifests_say_what_crates_io_shows() {
    for (name, folder, _) in CRATES {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).expect(name);
        let (_, package) = manifest.split_once("[package]").expect(name);
        let package = package.split("\n[").next().unwrap_or_default();
        let value = |key: &str| {
            let mut lines = package.lines();
            let line = lines.find(|line| line.starts_with(&format!("{key} = ")));
            line.unwrap_or_else(|| panic!("{name} has no {key}"))
        };
        for key in ["description", "documentation", "categories"] {
            value(key);
        }
        assert_eq!(value("repository.workspace"), "repository.workspace = true");
        assert_eq!(value("license.workspace"), "license.workspace = true");
        let keywords: Vec<&str> = value("keywords").split('"').skip(1).step_by(2).collect();
        assert!(
            keywords.len() <= 5 && keywords.iter().all(|keyword| keyword.len() <= 20),
            "{name}: {keywords:?}"
        );
        let readme = value("readme").split('"').nth(1).expect(name);
        let readme = fs::read_to_string(root().join(folder).join(readme)).expect(name);
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
    }
}
