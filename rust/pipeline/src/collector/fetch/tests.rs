use tempfile::TempDir;
use zeroxide_log::{Log, LogConfig};

use super::*;

fn queue() -> (TempDir, Queue) {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path(), LogConfig::default()).unwrap();
    let queue = Queue {
        reader: log.reader(),
        by_client: HashMap::new(),
        turns: VecDeque::new(),
        paused: VecDeque::new(),
        was_paused: false,
        waiting: 0,
        is_over: false,
    };
    (folder, queue)
}

fn job(client: &'static str, id: u64) -> Job {
    let route = Bytes::from_static(client.as_bytes());
    Job {
        asked: Asked {
            route,
            id,
            key: None,
        },
        what: What::OffsetAt { timestamp: 0 },
    }
}

#[test]
fn a_client_that_takes_no_replies_has_no_more_places_than_others() {
    let (_folder, mut queue) = queue();
    let now = Instant::now();
    for id in 0..PER_CLIENT as u64 {
        queue.push(job("mute", id)).unwrap();
    }
    assert!(queue.push(job("mute", 99)).is_err());
    for _ in 0..PER_CLIENT {
        let turn = queue.take(now).unwrap();
        assert!(queue.push(job("mute", 99)).is_err(), "it is being answered");
        queue.pause(turn, now + PATIENCE);
        let refused = queue
            .push(job("mute", 99))
            .map_err(|(_, refusal)| refusal.code);
        assert_eq!(refused, Err(Code::TooMany), "it waits for room");
    }
    queue.push(job("reader", 0)).unwrap();
    assert_eq!(&queue.take(now).unwrap().job.asked.route[..], b"reader");

    // One of its requests is tried again, not all of them.
    let later = Instant::now() + 2 * PAUSE;
    let turn = queue.take(later).unwrap();
    assert_eq!(
        (turn.job.asked.id, turn.patience),
        (0, Some(now + PATIENCE))
    );
    assert!(queue.take(later).is_none());
    // They follow in order once there is room.
    queue.finish(&turn);
    for id in 1..PER_CLIENT as u64 {
        let turn = queue.take(later).unwrap();
        assert_eq!(turn.job.asked.id, id);
        queue.finish(&turn);
    }
    queue.push(job("mute", 99)).unwrap();
}
