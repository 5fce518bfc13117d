//! Finds the next frame after damage.
//!
//! A row's value can be a frame, with any offset and with right checksums. Inside damage, it looks like a frame of the log.
//! Most damage leaves the length and the number of rows in the header of the damaged frame, though, and these tell where the
//! next frame is and with which offset it begins. If one of them is damaged, the other one still tells the frames of the
//! log from values. If both are, offsets have to: they rise from frame to frame, and damage costs at least one row.

use std::cmp::Ordering;
use std::io;

use super::Walk;
use crate::frame::{FIXED, Header, MAGIC, MAX_HEADER};

/// The number of bytes after damage in which the next frame is looked for, once there is a frame that may be it.
const SEARCH_MOST: u64 = 64 << 20;

/// The number of bytes of frames whose checksums turn out wrong, after which no more are checked during one search.
const WRONG_MOST: u64 = 256 << 20;

/// The number of damaged frames in a row that are passed by what their headers say.
const HOPS_MOST: usize = 1000;

/// Bytes read at once.
const SEARCH_WINDOW: usize = 1 << 20;

/// The position at which a search begins.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// With a frame that is in order.
    Here(u64),
    /// After the beginning of a damaged one.
    Behind(u64),
}

/// The place of the next frame, and its first offset, according to a damaged header.
#[derive(Clone, Copy)]
struct Claims {
    position: u64,
    first: u64,
    /// The header begins as those of frames do.
    is_marked: bool,
}

/// See [`Walk::place`].
enum Place {
    /// The next frame.
    Whole,
    /// A frame with another offset, so the number of rows, or the length, is damaged.
    Another,
    Damaged,
}

/// What may be the next frame.
struct Candidate {
    rank: u8,
    position: u64,
    first: u64,
    /// The position and the offset after it and the frames that follow it directly.
    behind: u64,
    end: u64,
}

impl Candidate {
    fn new(rank: u8, position: u64, header: &Header) -> Candidate {
        Candidate {
            rank,
            position,
            first: header.first_offset,
            behind: position + header.length as u64,
            end: header.end(),
        }
    }

    /// Whether a later frame follows directly, alone or after others that do.
    fn continues_with(&mut self, position: u64, later: &Header) -> bool {
        let follows = position == self.behind && later.first_offset == self.end;
        if follows {
            self.behind += later.length as u64;
            self.end = later.end();
        }
        follows
    }

    /// Whether a later frame, which does not follow, shows that this one is none of the log's.
    fn is_refuted_by(&self, rank: u8, later: &Header) -> bool {
        rank == self.rank && later.first_offset < self.end
    }
}

impl Walk<'_> {
    /// Searches for the next frame. Returns its position and its first offset.
    pub(super) fn search(&mut self, from: Start) -> io::Result<Option<(u64, u64)>> {
        let (from, claims) = match from {
            Start::Here(position) => (position, None),
            Start::Behind(position) => (position + 8, self.claims(position, self.offset)?),
        };
        // The frame that the damaged one leads to may be damaged, too. Then the search is for the frame after that one.
        let (mut claims, mut next) = (claims, claims);
        for _ in 0..HOPS_MOST {
            let Some(place) = next else { break };
            match self.place(place)? {
                Place::Whole => return Ok(Some((place.position, place.first))),
                Place::Another => break,
                Place::Damaged => {}
            }
            next = self.claims(place.position, place.first)?;
            claims = next.filter(|next| next.is_marked).or(claims);
        }
        let mut end = self.bytes;
        let (mut found, mut torn) = (None::<Candidate>, None::<Candidate>);
        let mut wrong = 0;
        let mut position = from.next_multiple_of(8);
        while position < end {
            let bytes = self.window.get(
                self.file,
                position,
                SEARCH_WINDOW,
                SEARCH_WINDOW,
                self.bytes,
            )?;
            let mut at = 0;
            while at + MAGIC.len() <= bytes.len() {
                let here = position + at as u64;
                at += 8;
                if !bytes[at - 8..].starts_with(&MAGIC) {
                    continue;
                }
                let Ok(header) = self.header_at(here, MAX_HEADER)? else {
                    continue;
                };
                let length = header.length as u64;
                let rank = self.rank(claims, here, &header)?;
                let is_whole = wrong < WRONG_MOST && header.fits(&self.frame(here, &header, 0)?);
                if !is_whole {
                    wrong += length;
                    if let Some(rank) = rank
                        && torn.as_ref().is_none_or(|torn| rank > torn.rank)
                    {
                        torn = Some(Candidate::new(rank, here, &header));
                    }
                    continue;
                }
                // Values of this frame are not looked at.
                at = at.max(usize::try_from(here + length - position).unwrap_or(usize::MAX));
                at = at.next_multiple_of(8);
                let extends = found
                    .as_mut()
                    .is_some_and(|found| found.continues_with(here, &header));
                let Some(rank) = rank else { continue };
                if rank >= IS_THERE {
                    return Ok(Some((here, header.first_offset)));
                }
                let is_better = |found: &Candidate| {
                    rank > found.rank || (!extends && found.is_refuted_by(rank, &header))
                };
                if found.as_ref().is_none_or(is_better) {
                    found = Some(Candidate::new(rank, here, &header));
                    end = end.min(from.saturating_add(SEARCH_MOST));
                }
            }
            position += at.max(8) as u64;
        }
        Ok(found.or(torn).map(|next| (next.position, next.first)))
    }

    /// The statements of the damaged header at `position`, whose frame begins with `offset`; None if its bytes are gone.
    fn claims(&mut self, position: u64, offset: u64) -> io::Result<Option<Claims>> {
        if position >= self.bytes {
            return Ok(None);
        }
        let window = &mut self.window;
        let fixed = window.get(self.file, position, FIXED, MAX_HEADER, self.bytes)?;
        let Some((length, rows)) = Header::claims(&fixed) else {
            return Ok(None);
        };
        let is_marked = fixed.starts_with(&MAGIC);
        let is_there = is_marked || length >= FIXED as u64;
        Ok((is_there && length > 0).then(|| Claims {
            position: position.saturating_add(length),
            first: offset.saturating_add(rows),
            is_marked,
        }))
    }

    /// The state of the place to which a damaged header leads.
    fn place(&mut self, claims: Claims) -> io::Result<Place> {
        if !claims.position.is_multiple_of(8) || claims.position >= self.bytes {
            return Ok(Place::Damaged);
        }
        let Ok(header) = self.header_at(claims.position, MAX_HEADER)? else {
            return Ok(Place::Damaged);
        };
        if header.first_offset != claims.first || header.end() > self.most {
            return Ok(Place::Another);
        }
        let is_whole = header.fits(&self.frame(claims.position, &header, 0)?);
        Ok(if is_whole {
            Place::Whole
        } else {
            Place::Damaged
        })
    }

    /// How much is in favour of a frame after damage; None if it cannot be the next one of the log.
    fn rank(
        &mut self,
        claims: Option<Claims>,
        position: u64,
        header: &Header,
    ) -> io::Result<Option<u8>> {
        let is_there = claims.is_some_and(|claims| claims.position == position);
        let is_next = claims.is_some_and(|claims| claims.first == header.first_offset);
        let has_place = match (header.first_offset.cmp(&self.offset), header.span) {
            (Ordering::Less, _) => false,
            (_, 0) => is_there,
            (Ordering::Equal, _) => is_there || is_next,
            (Ordering::Greater, _) => true,
        };
        if !has_place || header.end() > self.most {
            return Ok(None);
        }
        let behind = position + header.length as u64;
        let continues = behind >= self.bytes
            || self
                .header_at(behind, MAX_HEADER)?
                .is_ok_and(|next| next.first_offset == header.end());
        let either = |holds: bool, bit: u8| if holds { bit } else { 0 };
        Ok(Some(
            either(is_there, IS_THERE) | either(is_next, IS_NEXT) | either(continues, CONTINUES),
        ))
    }
}

/// A frame is where the damaged one says that it ends.
const IS_THERE: u8 = 4;
/// It begins with the offset that follows from the damaged one's number of rows.
const IS_NEXT: u8 = 2;
/// Another frame follows it, or it is the last one.
const CONTINUES: u8 = 1;
