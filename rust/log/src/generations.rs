//! Generations record which opening of a log wrote which rows. An older copy of a folder continues under the same id
//! and with the same offsets as its original, but with other rows, and only the generation distinguishes them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::disk;
use crate::error::LogError;
use crate::private;

/// The file.
pub(crate) const GENERATIONS: &str = "generations";
const NEW_NAME: &str = "generations.new";

/// The maximum number of generations that are kept. Nothing is known about older rows.
const KEPT: usize = 4096;

/// One opening of a log that wrote rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// The offset of its first row.
    pub first: u64,
    /// A random number, never 0.
    pub id: u64,
}

/// All known generations of a log, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generations(Arc<[Generation]>);

impl Generations {
    /// Creates the list from first offsets and ids.
    pub fn new(all: impl IntoIterator<Item = Generation>) -> Generations {
        Generations(all.into_iter().collect())
    }

    /// Iterates over the generations in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Generation> {
        self.0.iter()
    }

    /// The generation of the row before `offset`; 0 if that is not known.
    pub fn before(&self, offset: u64) -> u64 {
        let at = self.0.partition_point(|one| one.first < offset);
        at.checked_sub(1).map_or(0, |at| self.0[at].id)
    }

    /// Checks whether a reader that has read up to `offset`, where the last row was of `generation`, has read this log.
    /// If not, returns the offset from which its rows differ, as far as that is known.
    pub fn check(&self, offset: u64, generation: u64) -> Result<(), u64> {
        let here = self.before(offset);
        if generation == 0 || here == 0 || here == generation {
            return Ok(());
        }
        let mut later = self.0.iter().skip_while(|one| one.id != generation);
        let behind = later.nth(1).map(|one| one.first);
        let unlike = self.0.iter().rev().find(|one| one.first < offset);
        Err(behind.unwrap_or_else(|| unlike.map_or(0, |one| one.first)))
    }

    /// Adds a generation that begins at `first`. A last one without rows is replaced.
    pub(crate) fn with(&self, first: u64) -> Result<Generations, LogError> {
        let id = u64::from_le_bytes(random()?).max(1);
        let before = self.0.iter().filter(|one| one.first < first).copied();
        let all: Vec<Generation> = before.chain([Generation { first, id }]).collect();
        Ok(Generations::new(
            all[all.len().saturating_sub(KEPT)..].iter().copied(),
        ))
    }

    /// Writes the list atomically: after a power cut, either the old or the new one is there.
    pub(crate) fn save(&self, dir: &Path) -> Result<(), LogError> {
        let (path, new) = (dir.join(GENERATIONS), dir.join(NEW_NAME));
        let write = || -> io::Result<()> {
            let mut file = private::new_file().truncate(true).open(&new)?;
            file.write_all(self.encode().as_bytes())?;
            file.sync_all()?;
            disk::rename(&new, &path)?;
            disk::sync_folder(dir)
        };
        write().map_err(|error| {
            let _ = disk::remove_file(&new); // an incomplete file, which no reader uses
            LogError::from_io("write", &path, error)
        })
    }

    /// Loads the list of a folder: empty if it has none; an error text if it is damaged.
    pub(crate) fn load(dir: &Path) -> io::Result<Result<Generations, &'static str>> {
        match disk::read_to_string(dir.join(GENERATIONS)) {
            Ok(text) => Ok(Generations::decode(&text).ok_or("it is damaged")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ok(Generations::default())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Err("it is damaged")),
            Err(error) => Err(error),
        }
    }

    fn encode(&self) -> String {
        let lines = self
            .iter()
            .map(|one| format!("{:020} {:016x}\n", one.first, one.id));
        let lines: String = lines.collect();
        format!("{lines}{:08x}\n", crc32c::crc32c(lines.as_bytes()))
    }

    fn decode(text: &str) -> Option<Generations> {
        let (lines, crc) = text.split_at_checked(text.len().checked_sub(9)?)?;
        if crc != format!("{:08x}\n", crc32c::crc32c(lines.as_bytes())) {
            return None;
        }
        let one = |line: &str| {
            let (first, id) = line.split_once(' ')?;
            Some(Generation {
                first: first.parse().ok()?,
                id: u64::from_str_radix(id, 16).ok()?,
            })
        };
        let all: Option<Vec<Generation>> = lines.lines().map(one).collect();
        all.map(Generations::new)
    }
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], LogError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; N];
    let filled = disk::random(&mut bytes);
    filled.map_err(|error| LogError::from_io("read", path, error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(all: &[(u64, u64)]) -> Generations {
        Generations::new(all.iter().map(|&(first, id)| Generation { first, id }))
    }

    #[test]
    fn a_text_says_them_again() {
        for all in [
            &[][..],
            &[(0, 7)],
            &[(0, 1), (500, u64::MAX), (u64::MAX, 3)],
        ] {
            let all = generations(all);
            assert_eq!(Generations::decode(&all.encode()), Some(all.clone()));
            let broken = all.encode().replace('\n', " ");
            assert_eq!(Generations::decode(&broken), None);
        }
    }

    #[test]
    fn rows_of_another_history_are_distinguished() {
        let log = generations(&[(0, 1), (500, 3), (600, 4)]);
        assert_eq!(log.check(0, 9), Ok(()), "nothing was read yet");
        assert_eq!(log.check(500, 1), Ok(()));
        assert_eq!(log.check(501, 3), Ok(()));
        assert_eq!(
            log.check(800, 1),
            Err(500),
            "read on in the log that was copied"
        );
        assert_eq!(log.check(800, 3), Err(600));
        assert_eq!(log.check(800, 2), Err(600), "as far as is known");
        assert_eq!(log.check(550, 2), Err(500));
        assert_eq!(log.check(800, 0), Ok(()), "read before they were kept");
        assert_eq!(generations(&[(500, 3)]).check(400, 2), Ok(()));
    }

    #[test]
    fn one_without_rows_is_not_kept() {
        let first = Generations::default().with(0).unwrap();
        let second = first.with(0).unwrap();
        assert_eq!(second.iter().len(), 1);
        assert_ne!(first.before(1), second.before(1));
        let third = second.with(10).unwrap();
        assert_eq!(third.iter().len(), 2);
        assert_eq!(third.before(10), second.before(1));
        assert_ne!(third.before(11), second.before(1));
    }
}
