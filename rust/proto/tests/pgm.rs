//! PGM on a simulated network that loses, repeats and reorders datagrams, with a clock of its own. This is one file,
//! because all tests share the network.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use zeroxide_proto::Message;
use zeroxide_proto::pgm::{
    DATA_HEAD, Event, Packer, Receiver, ReceiverConfig, Sender, SenderConfig, Tsi,
};

const PORT: u16 = 5555;
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 0, 0, 1));
const NLA: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const TSI: Tsi = Tsi {
    gsi: *b"sender",
    port: 99,
};

const ODATA: u8 = 4;
const RDATA: u8 = 5;
const NAK: u8 = 8;
const NCF: u8 = 10;

/// A datagram on its way: when, and which of those of that time.
type At = (Instant, u64);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Sender,
    Receiver(usize),
}

type Drops = Box<dyn FnMut(&[u8], Place) -> bool>;

/// What happens to datagrams.
#[derive(Clone, Copy, Debug)]
struct Weather {
    /// In percent.
    loss: u64,
    copies: u64,
    /// The longest random delay, which reorders.
    delay: Duration,
}

const FINE: Weather = Weather {
    loss: 0,
    copies: 0,
    delay: Duration::ZERO,
};

struct Net {
    now: Instant,
    start: Instant,
    dice: u64,
    weather: Weather,
    in_transit: BTreeMap<At, (Place, Vec<u8>)>,
    sender: Sender,
    packer: Packer,
    queue: VecDeque<Message>,
    size: usize,
    receivers: Vec<Receiver>,
    heard: Vec<Vec<Vec<u8>>>,
    /// The sender does not end before each receiver has that many messages.
    expected: usize,
    gaps: Vec<u64>,
    left: Vec<u64>,
    /// Every datagram that was sent.
    sent: Vec<(Instant, Vec<u8>)>,
    /// Decides about datagrams before the weather does.
    drops: Drops,
}

fn sender_config() -> SenderConfig {
    SenderConfig {
        tsi: TSI,
        port: PORT,
        nla: NLA,
        group: GROUP,
        rate: 1_000_000,
        headers: 28,
        window: 1000,
        first: 0,
    }
}

fn receiver_config(seed: u64) -> ReceiverConfig {
    ReceiverConfig {
        port: PORT,
        group: GROUP,
        window: 1000,
        held_bytes: 1 << 20,
        largest: 1 << 20,
        seed,
    }
}

impl Net {
    fn new(seed: u64, weather: Weather, receivers: usize) -> Net {
        Net::with(seed, weather, receivers, sender_config(), receiver_config)
    }

    fn with(
        seed: u64,
        weather: Weather,
        receivers: usize,
        config: SenderConfig,
        each: fn(u64) -> ReceiverConfig,
    ) -> Net {
        let now = Instant::now();
        Net {
            now,
            start: now,
            dice: seed | 1,
            weather,
            in_transit: BTreeMap::new(),
            sender: Sender::new(config, now),
            packer: Packer::default(),
            queue: VecDeque::new(),
            size: 200,
            receivers: (0..receivers)
                .map(|n| Receiver::new(each(seed + n as u64)))
                .collect(),
            heard: vec![Vec::new(); receivers],
            expected: 0,
            gaps: vec![0; receivers],
            left: vec![0; receivers],
            sent: Vec::new(),
            drops: Box::new(|_, _| false),
        }
    }

    fn dice(&mut self, sides: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % sides.max(1)
    }

    fn transmit(&mut self, to: Place, bytes: &[u8]) {
        let copies = 1 + u64::from(self.dice(100) < self.weather.copies);
        for _ in 0..copies {
            let is_lost = self.dice(100) < self.weather.loss;
            if (self.drops)(bytes, to) || is_lost {
                continue;
            }
            let delay = self.dice(self.weather.delay.as_micros() as u64 + 1);
            let at = self.now + Duration::from_micros(500 + delay);
            let number = self
                .in_transit
                .keys()
                .filter(|(when, _)| *when == at)
                .count();
            self.in_transit
                .insert((at, number as u64), (to, bytes.to_vec()));
        }
    }

    fn turn(&mut self) {
        loop {
            if self.sender.has_room()
                && let Some(packed) = self
                    .packer
                    .pack(DATA_HEAD, self.size, || self.queue.pop_front())
            {
                self.sender.push(packed.bytes);
            }
            let Some(bytes) = self.sender.poll_transmit(self.now) else {
                break;
            };
            self.sent.push((self.now, bytes.to_vec()));
            for n in 0..self.receivers.len() {
                self.transmit(Place::Receiver(n), &bytes);
            }
        }
        for n in 0..self.receivers.len() {
            self.receivers[n].handle_timeout(self.now);
            self.collect(n);
            while let Some(transmit) = self.receivers[n].poll_transmit() {
                assert_eq!(transmit.to, NLA);
                self.sent.push((self.now, transmit.bytes.clone()));
                self.transmit(Place::Sender, &transmit.bytes);
            }
        }
    }

    fn collect(&mut self, n: usize) {
        while let Some(event) = self.receivers[n].poll_event() {
            match event {
                Event::Message(message) => self.heard[n].push(flat(&message)),
                Event::Gap(tsi, _, count) => {
                    assert_eq!(tsi, TSI);
                    self.gaps[n] += count;
                }
                Event::Left(..) => self.left[n] += 1,
                Event::Joined(..) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lets time pass up to the next event. Returns false if there is none soon.
    fn step(&mut self) -> bool {
        self.turn();
        let arrival = self.in_transit.keys().next().map(|(at, _)| *at);
        let deadlines = self.receivers.iter().filter_map(Receiver::poll_timeout);
        let next = deadlines
            .chain(self.sender.poll_timeout())
            .chain(arrival)
            .min();
        let Some(next) = next.filter(|next| *next < self.now + Duration::from_secs(100)) else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some((at, _)) = self.in_transit.first_key_value()
            && at.0 <= self.now
        {
            let Some((_, (to, bytes))) = self.in_transit.pop_first() else {
                break;
            };
            match to {
                Place::Sender => self.sender.handle_datagram(&bytes).unwrap(),
                Place::Receiver(n) => {
                    let receiver = &mut self.receivers[n];
                    receiver.handle_datagram(NLA, &bytes, self.now).unwrap();
                    self.collect(n);
                }
            }
        }
        true
    }

    /// Lets the first SPM arrive, so that all receivers know the sender.
    fn meet(&mut self) {
        let weather = std::mem::replace(&mut self.weather, FINE);
        let until = self.now + Duration::from_millis(50);
        while self.now < until && self.step() {}
        self.weather = weather;
    }

    fn run(&mut self) {
        let mut ended = false;
        for _ in 0..1_000_000 {
            let is_sent =
                self.queue.is_empty() && !self.packer.has_more() && self.sender.has_room();
            let is_heard = self.heard.iter().all(|heard| heard.len() >= self.expected);
            if is_sent && is_heard && !ended {
                self.sender.end();
                ended = true;
            }
            if !self.step() {
                return;
            }
        }
        panic!("it does not end");
    }

    fn count(&self, kind: u8) -> usize {
        self.sent
            .iter()
            .filter(|(_, bytes)| bytes[4] == kind)
            .count()
    }
}

fn flat(message: &Message) -> Vec<u8> {
    message
        .iter()
        .flat_map(|frame| frame.iter().copied())
        .collect()
}

fn messages(count: usize) -> Vec<Message> {
    let body = |n: usize| vec![n as u8; 3 + n * 37 % 500];
    (0..count)
        .map(|n| Message::from_frames([n.to_be_bytes().to_vec().into(), body(n).into()]))
        .collect()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[16..20].try_into().unwrap())
}

/// Runs until everything is over, and returns what was sent.
fn send_all(net: &mut Net, count: usize) -> Vec<Vec<u8>> {
    let all = messages(count);
    net.meet();
    net.queue = all.clone().into();
    net.run();
    all.iter().map(flat).collect()
}

#[test]
fn nothing_is_lost_within_the_window() {
    let delay = Duration::from_millis(20);
    for (loss, copies, delay) in [
        (0, 0, Duration::ZERO),
        (1, 0, Duration::ZERO),
        (5, 0, Duration::ZERO),
        (0, 0, delay),
        (0, 20, delay),
        (20, 10, delay),
    ] {
        let weather = Weather {
            loss,
            copies,
            delay,
        };
        for seed in 1..6 {
            let mut net = Net::new(seed, weather, 3);
            let all = send_all(&mut net, 300);
            for n in 0..3 {
                assert_eq!(net.heard[n], all, "{weather:?} {seed}");
            }
            assert_eq!((&net.gaps[..], &net.left[..]), (&[0; 3][..], &[1; 3][..]));
            assert_eq!(net.count(RDATA) > 0, loss > 0 || !delay.is_zero());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost_on_any_network(
        seed in any::<u64>(),
        loss in 0..25u64,
        copies in 0..30u64,
        delay in 0..60u64,
        first in prop_oneof![any::<u32>(), u32::MAX - 100..u32::MAX],
        size in 3..400usize,
    ) {
        let weather = Weather { loss, copies, delay: Duration::from_millis(delay) };
        let config = SenderConfig { first, ..sender_config() };
        let mut net = Net::with(seed >> 1, weather, 2, config, receiver_config);
        net.size = size.max(20);
        net.expected = 60;
        let all = send_all(&mut net, 60);
        prop_assert_eq!(&net.heard[0], &all);
        prop_assert_eq!(&net.heard[1], &all);
        prop_assert_eq!(&net.gaps[..], &[0, 0]);
    }
}

#[test]
fn numbers_wrap_around() {
    for first in [u32::MAX - 20, u32::MAX, (1 << 31) - 20] {
        let weather = Weather { loss: 10, ..FINE };
        let config = SenderConfig {
            first,
            ..sender_config()
        };
        let mut net = Net::with(3, weather, 1, config, receiver_config);
        let all = send_all(&mut net, 100);
        assert_eq!(net.heard[0], all);
    }
}

#[test]
fn a_packet_is_sent_once_and_then_as_a_repair() {
    let weather = Weather { loss: 20, ..FINE };
    let mut net = Net::new(1, weather, 2);
    send_all(&mut net, 100);
    let numbers = |kind: u8| {
        let of_kind = net.sent.iter().filter(move |(_, bytes)| bytes[4] == kind);
        of_kind.map(|(_, bytes)| number(bytes)).collect::<Vec<_>>()
    };
    let originals = numbers(ODATA);
    assert_eq!(originals, Vec::from_iter(0..originals.len() as u32));
    let repairs = numbers(RDATA);
    assert!(!repairs.is_empty() && repairs.iter().all(|number| originals.contains(number)));
}

/// A sender that needs seconds for a hundred messages, so that it does not end before a receiver has what it misses.
fn slow() -> Net {
    let config = SenderConfig {
        rate: 12_500,
        ..sender_config()
    };
    Net::with(1, FINE, 1, config, receiver_config)
}

#[test]
fn a_request_is_repeated_until_it_arrives() {
    let mut net = slow();
    let mut requests = 0;
    net.drops = Box::new(move |bytes, _| match bytes[4] {
        ODATA => number(bytes) == 3,
        NAK => {
            requests += 1;
            requests <= 4
        }
        _ => false,
    });
    let all = send_all(&mut net, 100);
    assert_eq!(net.heard[0], all);
    assert_eq!(
        (net.count(NAK), net.count(NCF), net.count(RDATA)),
        (5, 1, 1)
    );
}

#[test]
fn a_repair_that_is_lost_is_requested_again() {
    let mut net = slow();
    let mut repairs = 0;
    net.drops = Box::new(move |bytes, _| match bytes[4] {
        ODATA => number(bytes) == 3,
        RDATA => {
            repairs += 1;
            repairs <= 2
        }
        _ => false,
    });
    let all = send_all(&mut net, 100);
    assert_eq!(net.heard[0], all);
    assert_eq!((net.count(NAK), net.count(RDATA)), (3, 3));
}

#[test]
fn the_last_packet_is_repaired() {
    let mut net = Net::new(1, FINE, 1);
    net.drops = Box::new(|bytes, _| bytes[4] == ODATA);
    let all = send_all(&mut net, 1);
    assert_eq!(net.heard[0], all);
}

#[test]
fn receivers_do_not_request_what_another_has_requested() {
    let mut net = Net::new(1, FINE, 30);
    net.drops = Box::new(|bytes, _| bytes[4] == ODATA && number(bytes).is_multiple_of(10));
    let all = send_all(&mut net, 300);
    assert!(net.heard.iter().all(|heard| *heard == all));
    let lost = net.count(ODATA) / 10;
    let requests = net.count(NAK);
    // A request needs half a millisecond to the sender, and its confirmation as long to the others.
    assert!(
        lost > 20 && requests >= lost && requests < 4 * lost,
        "{requests} for {lost}"
    );
}

#[test]
fn packets_that_the_window_does_not_cover_are_counted() {
    let config = SenderConfig {
        window: 20,
        rate: 20_000,
        ..sender_config()
    };
    let mut net = Net::with(1, FINE, 2, config, |seed| ReceiverConfig {
        window: 20,
        ..receiver_config(seed)
    });
    // The first receiver is away for a while.
    net.drops = Box::new(|bytes, to| {
        let is_data = matches!(bytes[4], ODATA | RDATA);
        to == Place::Receiver(0) && is_data && (50..150).contains(&number(bytes))
    });
    let all = send_all(&mut net, 200);
    assert_eq!(net.heard[1], all);
    assert_eq!(net.gaps, [100, 0]);
    let heard = &net.heard[0];
    assert!(heard.len() < all.len() && heard.iter().all(|message| all.contains(message)));
    assert!(heard.is_sorted() && heard.last() == all.last());
}

#[test]
fn a_receiver_that_comes_late_begins_with_a_whole_message() {
    let mut net = Net::new(1, FINE, 1);
    net.drops = Box::new(|bytes, _| bytes[4] != ODATA || number(bytes) < 10);
    net.queue = messages(100).into();
    let all: Vec<_> = net.queue.iter().map(flat).collect();
    net.run();
    let heard = &net.heard[0];
    assert!(heard.len() > 50 && heard.len() < 100);
    assert_eq!(heard[..], all[100 - heard.len()..]);
    assert_eq!(net.gaps, [0]);
}

#[test]
fn the_rate_is_kept_with_repairs() {
    for rate in [12_500, 1_000_000] {
        let config = SenderConfig {
            rate,
            ..sender_config()
        };
        let weather = Weather { loss: 10, ..FINE };
        let mut net = Net::with(1, weather, 1, config, receiver_config);
        let all = send_all(&mut net, 200);
        assert_eq!(net.heard[0], all);
        let from_sender = net.sent.iter().filter(|(_, bytes)| bytes[4] != NAK);
        let mut total = 0;
        let mut last = net.start;
        for (at, bytes) in from_sender {
            let most = rate as f64 * (*at - net.start).as_secs_f64() + rate as f64 / 100.0;
            assert!(
                total as f64 <= most,
                "{total} bytes after {:?}",
                *at - net.start
            );
            total += bytes.len() + 28;
            last = *at;
        }
        // The pauses at the beginning and at the end are less than two seconds.
        let least = rate as f64 * ((last - net.start).as_secs_f64() - 2.0);
        assert!(total as f64 >= least * 0.9);
    }
}

/// A sender with a window of four that has sent ten packets.
fn sender_of_ten(now: &mut Instant) -> Sender {
    let config = SenderConfig {
        window: 4,
        ..sender_config()
    };
    let mut sender = Sender::new(config, *now);
    for _ in 0..10 {
        let mut one = Some(Message::from(b"x".to_vec()));
        let packed = Packer::default().pack(DATA_HEAD, 100, || one.take());
        sender.push(packed.unwrap().bytes);
        while !sender.has_room() {
            answer(&mut sender, now);
        }
    }
    answer(&mut sender, now);
    sender
}

/// The packets that a sender sends within a few milliseconds.
fn answer(sender: &mut Sender, now: &mut Instant) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for _ in 0..10 {
        *now += Duration::from_micros(500);
        sent.extend(sender.poll_transmit(*now).map(|bytes| bytes.to_vec()));
    }
    sent
}

/// The request of a receiver that misses everything in this range of numbers.
fn request(from: u32, to: u32) -> Vec<u8> {
    let now = Instant::now();
    let mut net = Net::new(1, FINE, 0);
    let mut receiver = Receiver::new(receiver_config(1));
    net.sender = Sender::new(
        SenderConfig {
            first: from,
            ..sender_config()
        },
        now,
    );
    let mut packets = Vec::new();
    net.queue = messages(200).into();
    while packets.len() < (to - from + 2) as usize {
        net.now += Duration::from_millis(1);
        net.turn();
        packets = net.sent.iter().filter(|(_, b)| b[4] == ODATA).collect();
    }
    let first = net.sent.iter().find(|(_, bytes)| bytes[4] == 0).unwrap();
    receiver.handle_datagram(NLA, &first.1, now).unwrap();
    let newest = &packets[(to - from) as usize].1;
    receiver.handle_datagram(NLA, newest, now).unwrap();
    receiver.handle_timeout(now + Duration::from_millis(50));
    receiver.poll_transmit().unwrap().bytes
}

#[test]
fn the_sender_keeps_exactly_its_window() {
    let mut now = Instant::now();
    for oldest in 4..9 {
        let mut sender = sender_of_ten(&mut now);
        sender.handle_datagram(&request(oldest, 9)).unwrap();
        let answer = answer(&mut sender, &mut now);
        let of_kind = |kind: u8| answer.iter().filter(move |bytes| bytes[4] == kind);
        let repaired: Vec<u32> = of_kind(RDATA).map(|bytes| number(bytes)).collect();
        assert_eq!(repaired, Vec::from_iter(oldest.max(6)..9));
        assert_eq!(of_kind(NCF).count(), 1);
        let trail = 6u32.to_be_bytes();
        assert!(of_kind(RDATA).all(|bytes| bytes[20..24] == trail));
    }
    let mut sender = sender_of_ten(&mut now);
    sender.handle_datagram(&request(2, 5)).unwrap();
    let answer = answer(&mut sender, &mut now);
    assert_eq!(answer.len(), 1);
    assert_eq!(
        (answer[0][4], &answer[0][20..28]),
        (0, &b"\0\0\0\x06\0\0\0\x09"[..])
    );
}

#[test]
fn requests_about_other_senders_are_not_answered() {
    let mut now = Instant::now();
    for at in [0, 2, 8, 27, 35] {
        let mut request = request(6, 9);
        request[at] ^= 1;
        // Without a checksum.
        request[6..8].fill(0);
        let mut sender = sender_of_ten(&mut now);
        sender.handle_datagram(&request).unwrap();
        assert_eq!(answer(&mut sender, &mut now), [b""; 0], "{at}");
    }
}

/// Datagrams that resemble PGM, with the numbers where they count.
fn nearly_pgm() -> impl Strategy<Value = Vec<u8>> {
    let port = prop_oneof![9 => Just(PORT), 1 => any::<u16>()];
    let kind = prop_oneof![
        Just(0u8),
        Just(4),
        Just(5),
        Just(8),
        Just(9),
        Just(10),
        any::<u8>()
    ];
    let number = || prop_oneof![0..2000u32, any::<u32>(), u32::MAX - 20..=u32::MAX];
    let tsi = prop_oneof![Just(99u16), any::<u16>()];
    let flags = prop_oneof![4 => Just(0u8), 1 => any::<u8>()];
    (
        kind,
        flags,
        port,
        tsi,
        [number(), number(), number()],
        vec(any::<u8>(), 0..60),
    )
        .prop_map(|(kind, flags, port, tsi, numbers, rest)| {
            let is_upstream = kind == NAK;
            let ports = if is_upstream {
                [port, tsi]
            } else {
                [tsi, port]
            };
            let mut bytes = Vec::new();
            bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
            bytes.extend([kind, flags, 0, 0]);
            bytes.extend(TSI.gsi);
            bytes.extend((rest.len() as u16).to_be_bytes());
            match kind {
                0 => bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes())),
                4 | 5 => bytes.extend(numbers[..2].iter().flat_map(|n| n.to_be_bytes())),
                _ => bytes.extend(numbers[0].to_be_bytes()),
            }
            match kind {
                0 => bytes.extend([0, 1, 0, 0, 192, 0, 2, 1]),
                8 | 10 => bytes.extend([0, 1, 0, 0, 192, 0, 2, 1, 0, 1, 0, 0, 239, 0, 0, 1]),
                _ => {}
            }
            bytes.extend(rest);
            let mut sum: u32 = 0;
            for word in bytes.chunks(2) {
                let low = word.get(1).copied().unwrap_or(0);
                sum += u32::from(u16::from_be_bytes([word[0], low]));
            }
            while sum > 0xffff {
                sum = (sum >> 16) + (sum & 0xffff);
            }
            let sum = match !(sum as u16) {
                0 => 0xffff,
                sum => sum,
            };
            bytes[6..8].copy_from_slice(&sum.to_be_bytes());
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn hostile_packets_cost_no_more_than_allowed(
        packets in vec((nearly_pgm(), 0..100u64), 1..300),
    ) {
        let config = ReceiverConfig { held_bytes: 2000, ..receiver_config(1) };
        let mut receiver = Receiver::new(config);
        let mut now = Instant::now();
        let mut sender = sender_of_ten(&mut now);
        let mut senders = 0i64;
        for (packet, pause) in packets {
            now += Duration::from_millis(pause);
            let _ = receiver.handle_datagram(NLA, &packet, now);
            receiver.handle_timeout(now);
            while let Some(event) = receiver.poll_event() {
                match event {
                    Event::Joined(..) => senders += 1,
                    Event::Left(..) => senders -= 1,
                    _ => {}
                }
            }
            let mut requests = 0;
            while receiver.poll_transmit().is_some() {
                requests += 1;
            }
            prop_assert!(requests < 1000);
            prop_assert!((0..=256).contains(&senders));
            // And what the incomplete messages of the senders have received.
            prop_assert!(receiver.held_bytes() < 2000 + 100 * 60);
            let _ = sender.handle_datagram(&packet);
            prop_assert!(answer(&mut sender, &mut now).len() <= 10);
        }
    }
}

#[test]
fn a_sender_can_be_heard_again_after_an_impostor() {
    let mut net = Net::new(1, FINE, 1);
    net.meet();
    let all = messages(100);
    net.queue = all.iter().take(50).cloned().collect();
    for _ in 0..2000 {
        net.step();
        if net.now > net.start + Duration::from_secs(1) {
            break;
        }
    }
    let before = net.heard[0].len();
    assert_eq!(before, 50);
    // Two packets with numbers far away, in the name of the sender.
    let config = SenderConfig {
        first: 1 << 30,
        ..sender_config()
    };
    let mut impostor = Net::with(1, FINE, 0, config, receiver_config);
    impostor.queue = messages(3).into();
    impostor.run();
    for (_, packet) in &impostor.sent {
        if packet[4] == ODATA {
            net.receivers[0]
                .handle_datagram(NLA, packet, net.now)
                .unwrap();
        }
    }
    net.collect(0);
    let before = net.heard[0].len();
    net.queue = all.iter().skip(50).cloned().collect();
    net.run();
    let heard: Vec<_> = net.heard[0][before..].to_vec();
    let expected: Vec<_> = all[50..].iter().map(flat).collect();
    assert!(heard.len() > 40 && heard[..] == expected[50 - heard.len()..]);
}

#[test]
fn a_message_of_any_size_is_carried() {
    let mut net = Net::new(1, Weather { loss: 3, ..FINE }, 1);
    net.meet();
    let large = vec![7; 300_000];
    net.size = 1450;
    net.queue.push_back(Message::from(large.clone()));
    net.run();
    assert_eq!(net.heard[0], [large]);
}
