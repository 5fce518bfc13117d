//! Why connections were not made, or have ended, for the texts of errors.

/// The number of binds and connects whose last setback is kept.
const MOST: usize = 16;
/// The maximum number of characters of a text. Peers have a part in some.
const LONGEST: usize = 200;

/// The last setback of the first binds and connects that have one, by the number of the call. Errors name the first
/// endpoints.
#[derive(Default)]
pub(super) struct Setbacks(Vec<(u64, String)>);

impl Setbacks {
    /// Records the last setback of a bind or connect, or with `None` that a connection is up again.
    pub(super) fn note(&mut self, source: u64, why: Option<String>) {
        self.0.retain(|(other, _)| *other != source);
        if let Some(mut why) = why {
            if let Some((end, _)) = why.char_indices().nth(LONGEST) {
                why.truncate(end);
                why.push_str(" ...");
            }
            self.0.push((source, why));
            self.0.sort_by_key(|(source, _)| *source);
            self.0.truncate(MOST);
        }
    }

    /// The last setback of a bind or connect.
    pub(super) fn of(&self, source: u64) -> Option<&str> {
        let mut known = self.0.iter();
        known
            .find(|(other, _)| *other == source)
            .map(|(_, why)| why.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setback_is_kept_of_a_limited_number_of_calls_and_characters() {
        let mut setbacks = Setbacks::default();
        for source in (0..100).rev() {
            setbacks.note(source, Some("first".to_owned()));
            setbacks.note(source, Some("é".repeat(1000)));
        }
        assert_eq!(setbacks.0.len(), MOST);
        assert_eq!(setbacks.of(99), None);
        let kept = setbacks.of(0).expect("the first one");
        assert_eq!(kept.chars().count(), LONGEST + " ...".len());
        setbacks.note(0, None);
        assert_eq!(setbacks.of(0), None);
    }
}
