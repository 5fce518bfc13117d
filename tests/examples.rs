//! The programs in examples/*.rs, each in processes of their own, over ipc so that they need no port.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn hello() {
    let folder = Folder::new("hello");
    let mut server = Example::start("hello_server", &[&folder.endpoint("s")]);
    for _ in 0..2 {
        let client = Example::start("hello_client", &[&folder.endpoint("s")]);
        assert_eq!(client.output(), ["World"]);
        assert_eq!(server.line(), "Hello");
    }
}

#[test]
fn weather() {
    let folder = Folder::new("weather");
    let _publisher = Example::start("weather_publisher", &[&folder.endpoint("s")]);
    let subscriber = Example::start("weather_subscriber", &[&folder.endpoint("s"), "10042", "3"]);
    let said = subscriber.output().join("\n");
    assert!(
        said.starts_with("10042: ") && said.ends_with(" degrees on average of 3 updates"),
        "{said}"
    );
}

#[test]
fn pipeline() {
    let folder = Folder::new("pipeline");
    let (tasks, results) = (folder.endpoint("t"), folder.endpoint("r"));
    let sink = Example::start("sink", &[&results]);
    let mut workers: Vec<_> = (0..2)
        .map(|_| Example::start("worker", &[&tasks, &results]))
        .collect();
    for worker in &mut workers {
        assert_eq!(worker.line(), "ready");
    }
    let mut ventilator = Example::start("ventilator", &[&tasks, &results, "50", "3"]);
    ventilator
        .child
        .stdin
        .take()
        .expect("piped")
        .write_all(b"\n")
        .expect("it reads");
    let handed_out = ventilator.output().pop().expect("a line");
    let work = handed_out
        .strip_prefix("handed out 50 tasks, ")
        .expect("the report of the distributor");
    let collected = sink.output().pop().expect("a line");
    assert!(
        collected.starts_with(&format!("50 results, {work} in ")),
        "{handed_out}; {collected}"
    );
}

/// A running example; it ends with this value.
struct Example {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Example {
        // target/<profile>/deps/examples-<hash> is running; cargo puts the examples beside deps.
        let test = env::current_exe().expect("a running test");
        let path = test
            .ancestors()
            .nth(2)
            .expect("target/<profile>")
            .join("examples")
            .join(name);
        let mut child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo builds the examples before it runs the tests");
        let (sender, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Example { child, lines }
    }

    /// The next line it prints.
    fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    /// All it prints until it ends well.
    fn output(mut self) -> Vec<String> {
        let (deadline, mut lines) = (Instant::now() + PATIENCE, Vec::new());
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            lines.push(line);
        }
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("our child") {
                assert!(status.success(), "{status}");
                return lines;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("still running; it said {lines:?}");
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// A folder for sockets; short, for there are about a hundred bytes for a socket's whole path.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("zx-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a writable folder for temporary files");
        Folder(path)
    }

    fn endpoint(&self, name: &str) -> String {
        format!("ipc://{}", self.0.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // remaining files do not affect the tests
    }
}
