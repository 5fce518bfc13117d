//! Averages the temperature of one postal code: `cargo run --example weather_subscriber [ENDPOINT] [CODE] [UPDATES]`
//!
//! The subscription is a prefix of the message, and the publisher filters: other codes never cross the network.

use zeroxide::{Context, Result, SocketType, Wait};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5556".into());
    let code = arguments.next().unwrap_or("10001".into());
    let updates = arguments
        .next()
        .map_or(20, |count| count.parse().expect("UPDATES is a number"));

    let context = Context::new();
    let subscriber = context.socket(SocketType::Sub)?;
    subscriber.connect(&endpoint)?;
    subscriber.subscribe(format!("{code} "))?;
    let mut sum = 0.0;
    for _ in 0..updates {
        let message = subscriber.recv(Wait::Forever)?;
        let text = String::from_utf8_lossy(message.head());
        let temperature = text.split(' ').nth(1).expect("code, temperature, humidity");
        sum += temperature.parse::<f64>().expect("a number");
    }
    println!(
        "{code}: {:.1} degrees on average of {updates} updates",
        sum / f64::from(updates)
    );
    Ok(())
}
