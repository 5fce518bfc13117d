//! Files and folders: what programs see, and what the disk has.

use std::collections::BTreeMap;

use super::Dice;

/// The folder at the root of a machine, which is always on disk.
pub(super) const ROOT: u64 = 0;

/// A power cut splits writes at multiples of this.
const SECTOR: usize = 512;

/// All files and folders of a machine, by number.
pub(super) struct Nodes {
    all: BTreeMap<u64, Node>,
    next: u64,
}

enum Node {
    File(Content),
    Folder(Names),
}

/// The bytes of a file.
#[derive(Default)]
pub(super) struct Content {
    /// What programs see.
    pub seen: Vec<u8>,
    /// The contents of the disk.
    disk: Vec<u8>,
    /// The changes that the next sync writes, in order.
    unsynced: Vec<Change>,
    pub is_locked: bool,
}

/// A change of a file.
#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

/// The names in a folder.
#[derive(Default)]
struct Names {
    seen: BTreeMap<String, u64>,
    disk: BTreeMap<String, u64>,
    unsynced: Vec<Entry>,
}

/// A change of a folder.
#[derive(Clone)]
enum Entry {
    Add(String, u64),
    Remove(String),
    Rename(String, String),
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes {
            all: [(ROOT, Node::Folder(Names::default()))].into(),
            next: ROOT + 1,
        }
    }
}

impl Nodes {
    pub fn child(&self, folder: u64, name: &str) -> Option<u64> {
        match self.all.get(&folder)? {
            Node::Folder(names) => names.seen.get(name).copied(),
            Node::File(_) => None,
        }
    }

    pub fn file(&mut self, node: u64) -> Option<&mut Content> {
        match self.all.get_mut(&node)? {
            Node::File(content) => Some(content),
            Node::Folder(_) => None,
        }
    }

    /// Whether a file or folder has a name in any folder.
    pub fn has_name(&self, node: u64) -> bool {
        self.all.values().any(|folder| match folder {
            Node::Folder(names) => names.seen.values().any(|named| *named == node),
            Node::File(_) => false,
        })
    }

    pub fn is_folder(&self, node: u64) -> bool {
        matches!(self.all.get(&node), Some(Node::Folder(_)))
    }

    /// The names in a folder, in the order of their files' creation.
    pub fn list(&self, folder: u64) -> Option<Vec<(String, u64)>> {
        match self.all.get(&folder)? {
            Node::Folder(names) => {
                let mut list: Vec<_> = names.seen.clone().into_iter().collect();
                list.sort_by_key(|(_, node)| *node);
                Some(list)
            }
            Node::File(_) => None,
        }
    }

    pub fn add(&mut self, folder: u64, name: &str, is_folder: bool) -> u64 {
        let node = self.next;
        self.next += 1;
        self.all.insert(
            node,
            match is_folder {
                true => Node::Folder(Names::default()),
                false => Node::File(Content::default()),
            },
        );
        self.change(folder, Entry::Add(name.to_owned(), node));
        node
    }

    pub fn remove(&mut self, folder: u64, name: &str) {
        self.change(folder, Entry::Remove(name.to_owned()));
    }

    pub fn rename(&mut self, folder: u64, from: &str, to: &str) {
        self.change(folder, Entry::Rename(from.to_owned(), to.to_owned()));
    }

    fn change(&mut self, folder: u64, entry: Entry) {
        if let Some(Node::Folder(names)) = self.all.get_mut(&folder) {
            let node = names.node_of(&entry);
            apply_entry(&mut names.seen, &entry, node);
            names.unsynced.push(entry);
        }
    }

    pub fn sync_folder(&mut self, folder: u64) {
        if let Some(Node::Folder(names)) = self.all.get_mut(&folder) {
            names.unsynced.clear();
            names.disk = names.seen.clone();
        }
    }

    pub fn unlock_all(&mut self) {
        for node in self.all.values_mut() {
            if let Node::File(content) = node {
                content.is_locked = false;
            }
        }
    }

    /// Keeps what the disk has, and what it happens to have written.
    pub fn lose_power(&mut self, dice: &mut Dice) {
        for node in self.all.values_mut() {
            match node {
                Node::File(content) => content.lose_power(dice),
                Node::Folder(names) => names.lose_power(dice),
            }
        }
        let mut reached = vec![ROOT];
        let mut at = 0;
        while at < reached.len() {
            if let Some(Node::Folder(names)) = self.all.get(&reached[at]) {
                reached.extend(names.seen.values());
            }
            at += 1;
        }
        self.all.retain(|node, _| reached.contains(node));
    }
}

impl Content {
    pub fn write(&mut self, position: u64, bytes: &[u8]) {
        let change = Change::Write(position, bytes.to_vec());
        apply(&mut self.seen, &change);
        self.unsynced.push(change);
    }

    pub fn set_length(&mut self, length: u64) {
        let change = Change::Length(length);
        apply(&mut self.seen, &change);
        self.unsynced.push(change);
    }

    pub fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&mut self.disk, &change);
        }
    }

    /// A sync that fails. Some of the data is on disk. The system takes the rest for written, and shows it or what the
    /// disk has.
    pub fn fail_sync(&mut self, dice: &mut Dice) {
        let keeps_pages = dice.below(3) > 0;
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Write(..) if dice.one_in(2) => apply(&mut self.disk, &change),
                Change::Write(..) => {}
                // The file system's own journal has it.
                Change::Length(_) => self.unsynced.push(change),
            }
        }
        if !keeps_pages {
            let length = self.seen.len();
            self.seen.clone_from(&self.disk);
            for change in &self.unsynced {
                apply(&mut self.seen, change);
            }
            self.seen.resize(length, 0);
        }
    }

    fn lose_power(&mut self, dice: &mut Dice) {
        let changes = std::mem::take(&mut self.unsynced);
        let kept_first = dice.below(changes.len() + 1);
        let way = dice.below(4);
        for (at, change) in changes.into_iter().enumerate() {
            let is_kept = match way {
                0 => false,
                1 => true,
                2 if at < kept_first => true,
                2 if at > kept_first => false,
                2 => {
                    tear(&mut self.disk, &change, dice);
                    false
                }
                _ => match dice.below(3) {
                    0 => true,
                    1 => false,
                    _ => {
                        tear(&mut self.disk, &change, dice);
                        false
                    }
                },
            };
            if is_kept {
                apply(&mut self.disk, &change);
            }
        }
        self.seen.clone_from(&self.disk);
        self.is_locked = false;
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(position, written) => put(bytes, *position as usize, written),
        Change::Length(length) => bytes.resize(*length as usize, 0),
    }
}

fn put(bytes: &mut Vec<u8>, position: usize, written: &[u8]) {
    let end = position + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[position..end].copy_from_slice(written);
}

/// Applies a part of a write.
fn tear(bytes: &mut Vec<u8>, change: &Change, dice: &mut Dice) {
    let Change::Write(position, written) = change else {
        return;
    };
    let (start, end) = (*position as usize, *position as usize + written.len());
    match dice.below(3) {
        0 => put(bytes, start, &written[..dice.below(written.len() + 1)]),
        // The file has its length, but zeros where the data should be.
        1 => bytes.resize(bytes.len().max(end), 0),
        _ => {
            let mut at = start;
            while at < end {
                let next = ((at / SECTOR + 1) * SECTOR).min(end);
                if dice.one_in(2) {
                    put(bytes, at, &written[at - start..next - start]);
                }
                at = next;
            }
        }
    }
}

impl Names {
    /// The file that a change is about, as programs see it.
    fn node_of(&self, entry: &Entry) -> Option<u64> {
        match entry {
            Entry::Add(_, node) => Some(*node),
            Entry::Remove(name) | Entry::Rename(name, _) => self.seen.get(name).copied(),
        }
    }

    fn lose_power(&mut self, dice: &mut Dice) {
        let kept = dice.below(self.unsynced.len() + 1);
        for entry in std::mem::take(&mut self.unsynced).into_iter().take(kept) {
            let node = match &entry {
                Entry::Add(_, node) => Some(*node),
                Entry::Remove(name) | Entry::Rename(name, _) => self.disk.get(name).copied(),
            };
            apply_entry(&mut self.disk, &entry, node);
        }
        self.seen = self.disk.clone();
    }
}

fn apply_entry(names: &mut BTreeMap<String, u64>, entry: &Entry, node: Option<u64>) {
    match (entry, node) {
        (Entry::Add(name, node), _) => {
            names.insert(name.clone(), *node);
        }
        (Entry::Remove(name), _) => {
            names.remove(name);
        }
        (Entry::Rename(from, to), Some(node)) => {
            names.remove(from);
            names.insert(to.clone(), node);
        }
        (Entry::Rename(..), None) => {}
    }
}
