//! Replies World to every Hello: `cargo run --example hello_server [ENDPOINT]`

use zeroxide::{Context, Result, SocketType, Wait};

fn main() -> Result<()> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or("tcp://127.0.0.1:5555".into());
    let context = Context::new();
    let socket = context.socket(SocketType::Rep)?;
    socket.bind(&endpoint)?;
    loop {
        println!(
            "{}",
            String::from_utf8_lossy(socket.recv(Wait::Forever)?.head())
        );
        socket.send("World", Wait::Forever)?;
    }
}
