//! docs/states.md shows the states of objects that no unit test can reach, because their crate needs Python.

#[path = "common/drawing.rs"]
mod drawing;
#[path = "../rust/py/src/awaited/states.rs"]
mod lane;

use lane::{Watch, WatchEvent, Work, WorkEvent};

drawing::events!(WorkEvent {
    Serve => "something happens to the socket",
    Pause => "a call lets the loop turn",
    Repeat => "all were served, and there is more",
    Stop => "all were served, or it fails",
});

#[test]
fn the_page_shows_the_work_of_a_lane() {
    let name = |work: Work| format!("`{work:?}`");
    drawing::check(
        "lane's work",
        &[Work::Idle],
        EVENTS,
        Work::next,
        name,
        event_name,
    );
}

#[test]
fn the_page_shows_the_lanes() {
    let events = [WatchEvent::Wait(()), WatchEvent::Rest, WatchEvent::Leave];
    let event_name = |event| match event {
        WatchEvent::Wait(()) => "a call waits",
        WatchEvent::Rest => "no call waits",
        WatchEvent::Leave => "the socket closes, or the loop refuses",
    };
    let name = |watch| match watch {
        Watch::Apart => "`Apart`".to_owned(),
        Watch::Resting => "`Resting`".to_owned(),
        Watch::Waiting(()) => "`Waiting`".to_owned(),
    };
    let next = |watch: Watch<()>, event| watch.next(event).0;
    drawing::check("lane", &[Watch::Apart], &events, next, name, event_name);
}

#[test]
fn a_lane_lets_go_of_its_socket_once() {
    let (waiting, none) = Watch::Apart.next(WatchEvent::Wait('a'));
    assert_eq!((waiting, none), (Watch::Waiting('a'), None));
    assert_eq!(
        waiting.next(WatchEvent::Wait('b')),
        (Watch::Waiting('a'), Some('b'))
    );
    assert_eq!(waiting.next(WatchEvent::Rest), (Watch::Resting, Some('a')));
    assert_eq!(waiting.next(WatchEvent::Leave), (Watch::Apart, Some('a')));
}
