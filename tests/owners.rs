//! Patterns and mechanisms own their facts: code elsewhere asks for a property, never for a name.

mod source;

use std::fs;

use source::{files, identifier, root};

/// Where a socket type may be named: the patterns, and the lists of their protocol facts.
const OWNERS: &[&str] = &[
    "rust/core/src/patterns/",
    "rust/proto/src/socket_type.rs",
    "rust/proto/src/wires/",
];

#[test]
fn only_patterns_name_socket_types() {
    let mut wrong = Vec::new();
    for folder in ["rust/core/src", "rust/proto/src", "rust/py/src"] {
        complaints(folder, names_a_type, &mut wrong);
    }
    // The pipeline and nodes open sockets like any program, and know what they opened.
    complaints("rust/pipeline/src", compares_a_type, &mut wrong);
    complaints("rust/discovery/src", compares_a_type, &mut wrong);
    assert!(
        wrong.is_empty(),
        "ask for a field of PatternSpec instead:\n{}",
        wrong.join("\n")
    );
}

/// Calls that are about one mechanism, or about having none.
const OF_A_MECHANISM: &[&str] = &[
    "rust/core/src/socket/securing.rs",
    "rust/core/src/transports/",
];

#[test]
fn only_mechanisms_name_mechanisms() {
    let mut wrong = Vec::new();
    for folder in ["rust/core/src", "rust/py/src"] {
        complaints(folder, names_a_mechanism, &mut wrong);
    }
    wrong.retain(|line| !OF_A_MECHANISM.iter().any(|file| line.starts_with(file)));
    assert!(
        wrong.is_empty(),
        "ask for a field of MechanismSpec instead:\n{}",
        wrong.join("\n")
    );
}

/// The lines of code below `folder`, without tests and comments, to which `is_wrong` objects.
fn complaints(folder: &str, is_wrong: fn(&str) -> bool, wrong: &mut Vec<String>) {
    for file in files(&root().join(folder), "rs") {
        let name = file.strip_prefix(root()).expect("found below it");
        let name = name.to_string_lossy();
        if name.ends_with("tests.rs") || OWNERS.iter().any(|owner| name.starts_with(owner)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable source");
        for (number, line) in code(&text) {
            if is_wrong(line) {
                wrong.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
}

/// The numbered lines of a file above its tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

/// Whether a line names a type: `SocketType::Push`, or an import of several.
fn names_a_type(line: &str) -> bool {
    line.match_indices("SocketType::").any(|(at, path)| {
        let before = &line[..at];
        let name = identifier(&line[at + path.len()..]);
        let is_variant = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
        // `ProtocolError::SocketType` has no variants.
        is_variant && !before.ends_with("Error::") || line[at + path.len()..].starts_with('{')
    })
}

/// Whether a line names a mechanism: its spec, or its name in quotes.
fn names_a_mechanism(line: &str) -> bool {
    ["NULL", "PLAIN", "CURVE"].iter().any(|name| {
        let quoted = line.contains(&format!("\"{name}\""));
        let spec = line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + name.len()..].chars().next();
            let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            // `&CURVE`, `curve::CURVE`, but not the word in a text.
            !part(before) && !part(after) && (before == Some('&') || before == Some(':'))
        });
        quoted || spec
    })
}

/// Whether a line compares with a type.
fn compares_a_type(line: &str) -> bool {
    let asks = ["== SocketType::", "!= SocketType::", "matches!(", "=>"];
    names_a_type(line) && asks.iter().any(|asks| line.contains(asks))
}

#[test]
fn every_form_of_a_name_is_seen() {
    for wrong in [
        "if socket_type == SocketType::Sub {",
        "    SocketType::Pub => 1,",
        "use zeroxide_proto::socket_type::SocketType::{Pub, Sub};",
        "matches!(of, SocketType::Req | SocketType::Rep)",
    ] {
        assert!(names_a_type(wrong), "{wrong}");
    }
    for right in [
        "for socket_type in SocketType::ALL {",
        "SocketType::from_id(number)",
        "return Err(ProtocolError::SocketType { ours, theirs });",
        "fn check(&self, socket: SocketType) {",
    ] {
        assert!(!names_a_type(right), "{right}");
    }
    for wrong in [
        "if peer.mechanism == \"CURVE\" {",
        "let spec = &curve::CURVE;",
        "security.set_role(&PLAIN, true)",
    ] {
        assert!(names_a_mechanism(wrong), "{wrong}");
    }
    assert!(!names_a_mechanism(
        "ids::CURVE_SERVER => \"CURVE needs a key\","
    ));
    let text = "a\n/// SocketType::Sub\nb // SocketType::Sub\n#[cfg(test)]\nmod tests { SocketType::Sub }\n";
    assert!(code(text).all(|(_, line)| !names_a_type(line)));
}
