//! Draws the states of an object into docs/states.md, from the code that moves between them.
//!
//! A unit test hands over the states an object can begin in, its events, and the function that gives the next state.
//! The test fails if the page shows anything else. `ZEROXIDE_DRAW=1 cargo test the_page_shows` writes the page anew.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// Tests run side by side, and several of them may write the page.
static PAGE: Mutex<()> = Mutex::new(());

/// An array of all events of a type, and the function that names them. Does not compile if a variant is missing.
macro_rules! events {
    ($type:ident { $($variant:ident => $name:literal),* $(,)? }) => {
        const EVENTS: &[$type] = &[$($type::$variant),*];

        fn event_name(event: $type) -> &'static str {
            match event {
                $($type::$variant => $name,)*
            }
        }
    };
}
pub(crate) use events;

/// Compares the table called `name` with the page: a row for each state that can be reached, a column for each event.
pub(crate) fn check<S: Copy, E: Copy>(
    name: &str,
    starts: &[S],
    events: &[E],
    next: impl Fn(S, E) -> S,
    state_name: impl Fn(S) -> String,
    event_name: impl Fn(E) -> &'static str,
) {
    let mut table = String::from("| state |");
    for event in events {
        _ = write!(table, " {} |", event_name(*event));
    }
    table += "\n| --- |";
    table += &" --- |".repeat(events.len());
    for state in reachable(starts, events, &next, &state_name) {
        let from = state_name(state);
        _ = write!(table, "\n| {from} |");
        for event in events {
            let to = state_name(next(state, *event));
            _ = write!(table, " {} |", if to == from { "–" } else { &to });
        }
    }
    compare(name, &table);
}

/// The states that can be reached, in the order in which they are found. States of one name are one state.
pub(crate) fn reachable<S: Copy, E: Copy>(
    starts: &[S],
    events: &[E],
    next: impl Fn(S, E) -> S,
    state_name: impl Fn(S) -> String,
) -> Vec<S> {
    let mut found: Vec<S> = Vec::new();
    let mut new = starts.to_vec();
    while !new.is_empty() {
        let mut later = Vec::new();
        for state in new {
            if found
                .iter()
                .all(|known| state_name(*known) != state_name(state))
            {
                found.push(state);
                later.extend(events.iter().map(|event| next(state, *event)));
            }
        }
        new = later;
    }
    found
}

/// Compares the lines between a table's marks with what they should be, or replaces them.
fn compare(name: &str, table: &str) {
    let _turn = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = page();
    let text = fs::read_to_string(&path).expect("docs/states.md is there");
    let begin = format!("<!-- states: {name} -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("docs/states.md has no line {begin}"));
    let (_, after) = rest
        .split_once("<!-- end -->")
        .expect("each table on docs/states.md ends with a line <!-- end -->");
    let expected = format!("{before}{begin}\n{table}\n\n<!-- end -->{after}");
    if text == expected {
        return;
    }
    if env::var_os("ZEROXIDE_DRAW").is_none() {
        panic!(
            "docs/states.md does not show the states of {name} as they are; \
             ZEROXIDE_DRAW=1 cargo test the_page_shows writes it anew. The table is\n{table}"
        );
    }
    fs::write(&path, expected).expect("docs/states.md can be written");
}

fn page() -> std::path::PathBuf {
    // The manifest of a crate lies in the repository's root or two folders below.
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .map(|folder| folder.join("docs/states.md"))
        .find(|page| page.exists())
        .expect("docs/states.md is in the repository")
}
