//! Does the ventilator's tasks and reports to the sink: `cargo run --example worker [VENTILATOR] [SINK]`
//!
//! Start any number of workers; stop one with Ctrl-C.

use std::thread;
use std::time::Duration;

use zeroxide::{Context, Message, Result, SocketType, Wait};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let ventilator = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let sink = arguments.next().unwrap_or("tcp://127.0.0.1:5558".into());

    let context = Context::new();
    let tasks = context.socket(SocketType::Pull)?;
    tasks.connect(&ventilator)?;
    let results = context.socket(SocketType::Push)?;
    results.connect(&sink)?;
    println!("ready");
    loop {
        let milliseconds = String::from_utf8_lossy(tasks.recv(Wait::Forever)?.head()).into_owned();
        thread::sleep(Duration::from_millis(
            milliseconds.parse().expect("a task is a number"),
        ));
        results.send(
            Message::from_iter(["done".to_owned(), milliseconds]),
            Wait::Forever,
        )?;
    }
}
