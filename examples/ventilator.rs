//! Distributes tasks to any number of workers: `cargo run --example ventilator [ENDPOINT] [SINK] [TASKS] [LONGEST_MS]`
//!
//! Start the sink and any number of workers first, then this program, and press Enter: the connected workers get tasks
//! in turn. With `worker` and `sink` this is a pipeline: fan out, work in parallel, collect.

use std::io;

use zeroxide::{Context, Message, Result, SocketType, Wait};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let sink = arguments.next().unwrap_or("tcp://127.0.0.1:5558".into());
    let tasks = arguments
        .next()
        .map_or(100, |count| count.parse().expect("TASKS is a number"));
    let longest_ms: u32 = arguments
        .next()
        .map_or(100, |most| most.parse().expect("LONGEST_MS is a number"));

    let context = Context::new();
    let out = context.socket(SocketType::Push)?;
    out.bind(&endpoint)?;
    let collect = context.socket(SocketType::Push)?;
    collect.connect(&sink)?;
    println!("Press Enter when the workers are up");
    io::stdin().read_line(&mut String::new())?;

    // Tells the sink how many results to wait for; a worker's first result may overtake this message.
    collect.send(
        Message::from_iter(["expect".to_owned(), tasks.to_string()]),
        Wait::Forever,
    )?;
    let mut work_ms = 0;
    for task in 0..tasks {
        let milliseconds = 1 + task * 37 % longest_ms;
        out.send(milliseconds.to_string().as_str(), Wait::Forever)?;
        work_ms += milliseconds;
    }
    println!("handed out {tasks} tasks, {work_ms} ms of work");
    // Terminating the context waits until everything has been sent.
    out.close(None);
    collect.close(None);
    context.term()
}
