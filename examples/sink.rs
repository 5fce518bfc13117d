//! Collects the workers' results: `cargo run --example sink [ENDPOINT]`

use std::time::Instant;

use zeroxide::{Context, Result, SocketType, Wait};

fn main() -> Result<()> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or("tcp://127.0.0.1:5558".into());
    let context = Context::new();
    let results = context.socket(SocketType::Pull)?;
    results.bind(&endpoint)?;

    let (mut expected, mut done, mut work_ms, mut start) = (None, 0, 0, None);
    while expected != Some(done) {
        let message = results.recv(Wait::Forever)?;
        start.get_or_insert_with(Instant::now);
        let number = message.get(1).expect("a kind and a number");
        let number: u32 = String::from_utf8_lossy(number).parse().expect("a number");
        if message.head().as_slice() == b"expect" {
            expected = Some(number);
        } else {
            done += 1;
            work_ms += number;
        }
    }
    let elapsed = start.expect("something arrived").elapsed();
    println!(
        "{done} results, {work_ms} ms of work in {} ms",
        elapsed.as_millis()
    );
    Ok(())
}
