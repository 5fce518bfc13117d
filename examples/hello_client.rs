//! Sends Hello and prints the reply: `cargo run --example hello_client [ENDPOINT]`

use zeroxide::{Context, Result, SocketType, Wait};

fn main() -> Result<()> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or("tcp://127.0.0.1:5555".into());
    let context = Context::new();
    let socket = context.socket(SocketType::Req)?;
    socket.connect(&endpoint)?;
    socket.send("Hello", Wait::Forever)?;
    println!(
        "{}",
        String::from_utf8_lossy(socket.recv(Wait::Forever)?.head())
    );
    Ok(())
}
