//! Replays the seeds and the committed corpora through all oracles, without counters and in one go.

use zeroxide_fuzz::targets::TARGETS;
use zeroxide_fuzz::{corpus, guard};

#[test]
fn no_input_of_a_corpus_breaks_a_promise() {
    let mut faults = Vec::new();
    for target in TARGETS {
        let committed = corpus::load(&corpus::committed(), target.name).expect("a corpus");
        assert!(!committed.is_empty(), "{} has no corpus", target.name);
        guard::on_small_stack(|| {
            let inputs = (target.seeds)().into_iter().chain(committed);
            for input in inputs {
                if let Err(how) = guard::run(target, &input) {
                    faults.push(format!(
                        "{}: {how}\n  {}",
                        target.name,
                        input.escape_ascii()
                    ));
                }
            }
        });
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
