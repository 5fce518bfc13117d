//! What one folder of a crate knows and the others must not: a failing test for knowledge that leaks out.

mod source;

use std::fs;

use source::{files, root};
use zeroxide::{Context, SocketType};
use zeroxide_proto::wires::{self, WIRES};

const CORE: &str = "rust/core/src";
const PROTO: &str = "rust/proto/src";

/// The lines of a crate that are neither comments nor tests, each with its place, outside these folders and files.
fn code_outside(source: &str, homes: &[&str]) -> Vec<(String, String)> {
    let source = root().join(source);
    for home in homes {
        assert!(source.join(home).exists(), "{home} is gone");
    }
    let mut found = Vec::new();
    for file in files(&source, "rs") {
        let relative = file.strip_prefix(&source).expect("found below it");
        let is_test = relative.file_stem().is_some_and(|name| name == "tests");
        if homes.iter().any(|home| relative.starts_with(home)) || is_test {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable source");
        for (number, line) in code(&text) {
            found.push((format!("{}:{number}", relative.display()), line));
        }
    }
    assert!(found.len() > 5_000, "{} lines of code", found.len());
    found
}

/// The lines of a file before its tests, without comments.
fn code(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_gate = |line: &str| line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test, ");
    let is_tests = |pair: &[&str]| is_gate(pair[0]) && pair[1].starts_with("mod ");
    let end = lines.windows(2).position(is_tests).unwrap_or(lines.len());
    let without_comment = |line: &&str| match line.trim_start().starts_with("//") {
        true => String::new(),
        false => line.split(" // ").next().unwrap_or_default().to_owned(),
    };
    let lines = lines[..end].iter().map(without_comment);
    lines
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .collect()
}

/// Fails if a line of code outside these folders and files is `wrong`, and shows what is wrong with it.
fn only(source: &str, homes: &[&str], wrong: impl Fn(&str) -> Option<String>) {
    let lines = code_outside(source, homes).into_iter();
    let found: Vec<_> = lines
        .filter_map(|(place, line)| wrong(&line).map(|word| format!("{place}: {word}")))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The schemes of all transports, as the error about an unknown one lists them.
fn schemes() -> Vec<String> {
    let context = Context::new();
    let socket = context.socket(SocketType::Pair).expect("a socket");
    let error = socket.connect("unknown://place").expect_err("no transport");
    let text = error.to_string();
    let (_, known) = text.split_once("there are ").expect("a list of schemes");
    let words = known.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
    let found: Vec<_> = words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    // If the text changes, the list must not become empty or shorter.
    for scheme in ["inproc", "tcp", "tls+tcp", "wss", "vsock", "tipc", "sctp"] {
        assert!(
            found.iter().any(|known| known == scheme),
            "{scheme}: {text}"
        );
    }
    found
}

/// A scheme on its own, as code needs it to tell one transport from another.
fn scheme(line: &str, schemes: &[String]) -> Option<String> {
    let literals = schemes
        .iter()
        .flat_map(|scheme| ["", ":", "://"].map(|separator| format!("\"{scheme}{separator}\"")));
    literals.into_iter().find(|literal| line.contains(literal))
}

#[test]
fn only_transports_know_schemes() {
    let schemes = schemes();
    only(CORE, &["transports"], |line| scheme(line, &schemes));
}

/// A call, a type or a number of one system.
fn system(line: &str) -> Option<String> {
    let exact = ["libc", "rustix", "Errno"];
    let parts = [
        "epoll",
        "eventfd",
        "futex",
        "user_timeout",
        "bind_device",
        "peercred",
        "abstract_namespace",
    ];
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_wrong = |word: &&str| {
        let lower = word.to_ascii_lowercase();
        exact.contains(word) || parts.iter().any(|part| lower.contains(part))
    };
    let found = words.find(is_wrong).map(str::to_owned);
    found.or_else(|| error_number(line))
}

/// A constant such as `const ETIMEDOUT: u64 = 110;`.
fn error_number(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("const E")?;
    let (name, value) = rest.split_once('=')?;
    let is_number = value.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let (name, _) = name.split_once(':')?;
    let is_upper = name.chars().all(|c| c.is_ascii_uppercase());
    (is_number && is_upper).then(|| format!("E{name}"))
}

#[test]
fn only_sys_knows_the_system() {
    only(CORE, &["sys"], system);
}

#[test]
fn knowledge_of_the_system_is_seen() {
    for line in [
        "Err(rustix::io::Errno::AGAIN) => {}",
        "Some(libc::EPERM) => {}",
        "const ETIMEDOUT: u64 = 110;",
        "use crate::sys::epoll::Readiness;",
        "let bell = EventFd::new()?;",
        "socket.set_tcp_user_timeout(limit)?;",
    ] {
        assert!(system(line).is_some(), "{line}");
    }
    for line in [
        "error.errno() as u64",
        "ErrorKind::Again => errno::AGAIN,",
        "const EFSM: i32 = HAUSNUMERO + 51;",
        "const EVENTS_MAX: usize = 10;",
    ] {
        assert!(system(line).is_none(), "{line}");
    }
}

#[test]
fn comparing_a_scheme_is_seen() {
    let schemes = schemes();
    let scheme = |line| scheme(line, &schemes);
    assert!(scheme("if endpoint.scheme == \"inproc\" {").is_some());
    assert!(scheme("text.starts_with(\"tcp://\")").is_some());
    assert!(scheme("\"sctp\" => true,").is_some());
    assert!(scheme("Error::with(kind, \"STREAM speaks raw tcp and ipc only\")").is_none());
    let text = "let a = 1; // why\n// x == \"tcp\"\n#[cfg(test)]\nmod tests {\n";
    let lines: Vec<String> = code(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, ["let a = 1;", ""]);
}

/// The standard library's files, or a call to the system about them.
fn file(line: &str) -> Option<String> {
    let doors = ["std::fs", "unix::fs", "rustix::fs", "rustix::io::p"];
    let found = doors.iter().find(|door| line.contains(**door));
    // Of a path, and not of the kind of an entry in a folder.
    let methods = [
        ".exists()",
        ").is_file()",
        ").is_dir()",
        "path.is_file()",
        "path.is_dir()",
    ];
    let found = found.or_else(|| methods.iter().find(|method| line.contains(**method)));
    found.map(|found| (*found).to_owned())
}

#[test]
fn only_the_disk_knows_files() {
    only("rust/log/src", &["disk"], file);
    only("rust/pipeline/src", &[], file);
}

#[test]
fn opening_a_file_is_seen() {
    for line in [
        "use std::fs::{self, File};",
        "rustix::fs::fdatasync(&file)?;",
        "if path.exists() {",
    ] {
        assert!(file(line).is_some(), "{line}");
    }
    for line in ["use crate::disk::File;", "disk::exists(&path)"] {
        assert!(file(line).is_none(), "{line}");
    }
}

/// One socket type, as code needs it to tell it from others.
fn socket_type(line: &str) -> Option<String> {
    let names = line.split("SocketType::").skip(1);
    let mut names = names.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
    let found = names.find_map(|name| {
        name.filter(|name| {
            // Constants and functions are written in another way, and `Other` is any type.
            let is_variant =
                name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
            is_variant && *name != "Other"
        })
    });
    found.map(|name| format!("SocketType::{name}"))
}

#[test]
fn only_patterns_know_socket_types() {
    only(CORE, &["patterns"], socket_type);
    // The facts about each that peers must know.
    only(PROTO, &["socket_type.rs"], socket_type);
}

#[test]
fn asking_for_a_socket_type_is_seen() {
    for line in [
        "if self.socket_type == SocketType::Pub {",
        "matches!(kind, SocketType::Other(_) | SocketType::Router)",
    ] {
        assert!(socket_type(line).is_some(), "{line}");
    }
    for line in [
        "for kind in SocketType::ALL {",
        "SocketType::from_id(id)",
        "SocketType::Other(facts) => facts,",
        "socket_type: SocketType,",
    ] {
        assert!(socket_type(line).is_none(), "{line}");
    }
}

/// One mechanism, or an option of one.
fn mechanism(line: &str) -> Option<String> {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let is_wrong = |word: &&str| {
        let steps: Vec<_> = word.split("::").collect();
        let modules = &steps[..steps.len() - 1];
        let of = |step: &str, name: &str| step == name || step.starts_with(&format!("{name}_"));
        let named = |step: &&str| ["NULL", "PLAIN", "CURVE"].iter().any(|name| of(step, name));
        ["null", "plain", "curve"]
            .iter()
            .any(|module| modules.contains(module))
            || steps.iter().any(named)
    };
    words.find(is_wrong).map(str::to_owned)
}

#[test]
fn only_mechanisms_know_mechanisms() {
    // These offer CURVE and PLAIN under their names: keys and lists, calls that secure a socket, methods for options.
    let offers = [
        "access.rs",
        "access",
        "socket/securing.rs",
        "options/table.rs",
    ];
    only(CORE, &offers, mechanism);
    only(PROTO, &["mechanisms"], mechanism);
}

#[test]
fn asking_for_a_mechanism_is_seen() {
    for line in [
        "if spec.name == \"NULL\" {",
        "security.mechanism == &CURVE",
        "mechanisms::plain::USERNAME",
        "ids::CURVE_SERVER => {}",
    ] {
        assert!(mechanism(line).is_some(), "{line}");
    }
    for line in [
        "mechanisms::none()",
        "use super::explain::Direction;",
        "let plain = is_plain();",
    ] {
        assert!(mechanism(line).is_none(), "{line}");
    }
}

/// One wire protocol beside ZMTP: its module, its value, a type of it, or a question about it.
fn wire(line: &str) -> Option<String> {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let names: Vec<_> = WIRES
        .iter()
        .filter(|wire| **wire != wires::standard())
        .map(|wire| wire.name.to_ascii_lowercase())
        .collect();
    let is_wrong = |word: &&str| {
        let lower = word.to_ascii_lowercase();
        let parts: Vec<_> = lower.split('_').collect();
        names.iter().any(|name| parts.contains(&name.as_str()))
    };
    words.find(is_wrong).map(str::to_owned)
}

#[test]
fn only_its_file_and_its_row_know_a_wire_protocol() {
    // Its file, which the module above lists, and its patterns. Both crates offer its types to programs.
    let is_offer = |line: &str| {
        ["pub use wires::", "pub use zeroxide_proto::wires::"]
            .iter()
            .any(|offer| line.trim_start().starts_with(offer))
    };
    let wire = |line: &str| wire(line).filter(|_| !is_offer(line));
    only(CORE, &["patterns"], wire);
    only(PROTO, &["wires"], wire);
    only("rust/py/src", &[], wire);
}

#[test]
fn asking_for_a_wire_protocol_is_seen() {
    for line in [
        "} else if self.socket_type.is_sp() {",
        "Dialect::Sp(ours) => sp::opening(ours).to_vec(),",
        "wires::of(ours) == &SP",
        "let spec = self.over_sp();",
        "format!(\"{}.sp.nanomsg.org\", server.name())",
    ] {
        assert!(wire(line).is_some(), "{line}");
    }
    for line in [
        "wires::of(socket_type).form.as_ref()",
        "let space = spare(spec);",
        "if !wire.is_default() {",
    ] {
        assert!(wire(line).is_none(), "{line}");
    }
}
