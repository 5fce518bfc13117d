//! A chat without a server: programs on one network find each other. Start it on several machines or in several terminals,
//! and type. A line that begins with `@NAME ` goes to the people of this name only.
//!
//! ```sh
//! cargo run -p zeroxide-discovery --example chat -- Ann
//! cargo run -p zeroxide-discovery --example chat -- Bob
//! ```
//!
//! After the name, `--interface lo` selects a network interface, and `--port 5671` a UDP port. Where UDP is closed, one
//! program has `--gossip-bind 'tcp://*:5670'`, and the others `--gossip tcp://HOST:5670`. `--offer SERVICE=ENDPOINT` tells
//! others about a service.

use std::env;
use std::error::Error;
use std::io::{self, BufRead};
use std::thread;

use zeroxide::Message;
use zeroxide_discovery::{Builder, Event, Node};

const ROOM: &str = "chat";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().ok_or("which name?")?;
    let mut builder = Node::builder(name);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        builder = set(builder, &option, &value)?;
    }
    let node = builder.start()?;
    if let Some(endpoint) = node.gossip_endpoint() {
        println!("* others find this chat at {endpoint}");
    }
    node.join(ROOM)?;
    thread::scope(|scope| {
        scope.spawn(|| node.events(None).for_each(|event| show(&event)));
        let said = io::stdin()
            .lock()
            .lines()
            .try_for_each(|line| say(&node, &line?));
        node.stop(); // which also ends the events
        said
    })
}

fn set(builder: Builder, option: &str, value: &str) -> Result<Builder, Box<dyn Error>> {
    Ok(match option {
        "--interface" => builder.interface(value),
        "--port" => builder.port(value.parse()?),
        "--gossip" => builder.gossip(value),
        "--gossip-bind" => builder.gossip_bind(value),
        "--offer" => {
            let (service, endpoint) = value
                .split_once('=')
                .ok_or("--offer takes SERVICE=ENDPOINT")?;
            builder.offer(service, endpoint)
        }
        _ => return Err(format!("{option}: no such option").into()),
    })
}

fn say(node: &Node, line: &str) -> Result<(), Box<dyn Error>> {
    match line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
        None => drop(node.shout(ROOM, line)?),
        Some((name, text)) => {
            for peer in node.peers().iter().filter(|peer| &*peer.name == name) {
                node.whisper(peer.id, text)?;
            }
        }
    }
    Ok(())
}

fn show(event: &Event) {
    let name = event.name();
    match event {
        Event::Enter { .. } => println!("* {name} is here"),
        Event::Exit { reason, .. } => println!("* {name} has left: {reason}"),
        Event::Evasive { .. } => println!("* {name} does not answer"),
        Event::Shout { content, .. } => println!("{name}: {}", text(content)),
        Event::Whisper { content, .. } => println!("{name}, only to you: {}", text(content)),
        _ => {}
    }
}

fn text(content: &Message) -> String {
    String::from_utf8_lossy(content.head().as_slice()).into_owned()
}
