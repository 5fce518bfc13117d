//! Publishes made-up weather for a hundred postal codes: `cargo run --example weather_publisher [ENDPOINT]`
//!
//! A publisher needs no subscribers: it drops messages without one, and a subscriber that joins late gets later messages.

use std::thread;
use std::time::Duration;

use zeroxide::{Context, Result, SocketType, Wait};

fn main() -> Result<()> {
    let endpoint = std::env::args()
        .nth(1)
        .unwrap_or("tcp://127.0.0.1:5556".into());
    let context = Context::new();
    let publisher = context.socket(SocketType::Pub)?;
    publisher.bind(&endpoint)?;
    for update in 0_u32.. {
        let code = 10_001 + update % 100;
        let (temperature, humidity) = (update.wrapping_mul(7) / 100 % 60, 10 + update / 100 % 80);
        let text = format!("{code} {} {humidity}", i64::from(temperature) - 20);
        publisher.send(text.as_str(), Wait::Forever)?;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
