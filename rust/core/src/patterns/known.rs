//! [`Patterns`]: the socket types of one context.

use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::{PATTERNS, PatternSpec};
use crate::sys::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The patterns that sockets of one context can have: those of the library, and those that were added.
pub(crate) struct Patterns {
    all: RwLock<Vec<&'static PatternSpec>>,
}

impl Patterns {
    pub(crate) fn new() -> Patterns {
        Patterns {
            all: RwLock::new(PATTERNS.to_vec()),
        }
    }

    /// The pattern of a socket type.
    ///
    /// # Errors
    /// `Invalid` if there is none.
    pub(crate) fn find(&self, socket_type: SocketType) -> Result<&'static PatternSpec> {
        let all = self.all();
        let mut all = all.iter().copied();
        all.find(|spec| spec.socket_type == socket_type)
            .ok_or_else(|| {
                let number = socket_type.id();
                let text = format!(
                    "this context has no pattern for {socket_type} ({number}); Context::add_pattern adds one"
                );
                Error::with(ErrorKind::Invalid, text)
            })
    }

    /// The socket type with this number.
    pub(crate) fn numbered(&self, number: i32) -> Option<SocketType> {
        let all = self.all();
        let mut types = all.iter().map(|spec| spec.socket_type);
        types.find(|known| i32::from(known.id()) == number)
    }

    /// Adds a pattern.
    ///
    /// # Errors
    /// `AddressInUse` if a socket type has its name or its number; `Invalid` if it has no name.
    pub(crate) fn add(&self, spec: &'static PatternSpec) -> Result<()> {
        let (name, number) = (spec.socket_type.name(), spec.socket_type.id());
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let text = format!("a socket type's name is an ASCII word, unlike {name:?}");
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        for known in all.iter().map(|spec| spec.socket_type) {
            let text = if known.name() == name {
                format!("a socket type is called {name} already")
            } else if known.id() == number {
                format!("{name} cannot be added: its number {number} is that of {known}")
            } else {
                continue;
            };
            return Err(Error::with(ErrorKind::AddressInUse, text));
        }
        all.push(spec);
        Ok(())
    }

    fn all(&self) -> RwLockReadGuard<'_, Vec<&'static PatternSpec>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::TypeFacts;
    use crate::patterns::pair::PAIR;

    /// A pattern like PAIR's, with other facts.
    const fn spec(facts: &'static TypeFacts) -> PatternSpec {
        PatternSpec {
            socket_type: SocketType::Other(facts),
            ..PatternSpec::new(SocketType::Other(facts), PAIR.new)
        }
    }

    static FACTS: TypeFacts = TypeFacts::new("MESH", 128, || &[]);
    static MESH: PatternSpec = spec(&FACTS);

    #[test]
    fn an_added_pattern_is_found_by_type_and_number() {
        let patterns = Patterns::new();
        let error = patterns.find(MESH.socket_type).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("MESH (128)"), "{error}");
        assert_eq!(patterns.numbered(128), None);
        patterns.add(&MESH).unwrap();
        let found = patterns.find(SocketType::Other(&FACTS)).unwrap();
        assert!(std::ptr::eq(found, &MESH));
        assert_eq!(patterns.numbered(128), Some(MESH.socket_type));
        for socket_type in SocketType::ALL {
            let number = i32::from(socket_type.id());
            assert_eq!(patterns.numbered(number), Some(*socket_type));
        }
        for number in [-1, 127, 256 + 128, i32::MAX] {
            assert_eq!(patterns.numbered(number), None);
        }
    }

    #[test]
    fn taken_names_and_numbers_are_refused() {
        static SAME_NAME: TypeFacts = TypeFacts::new("MESH", 129, || &[]);
        static BUILT_IN_NAME: TypeFacts = TypeFacts::new("PUSH", 129, || &[]);
        static SAME_NUMBER: TypeFacts = TypeFacts::new("TRAM", 128, || &[]);
        static BUILT_IN_NUMBER: TypeFacts = TypeFacts::new("TRAM", 8, || &[]);
        static SPECS: [PatternSpec; 5] = [
            spec(&FACTS),
            spec(&SAME_NAME),
            spec(&BUILT_IN_NAME),
            spec(&SAME_NUMBER),
            spec(&BUILT_IN_NUMBER),
        ];
        let patterns = Patterns::new();
        patterns.add(&MESH).unwrap();
        let texts = [
            "called MESH already",
            "called MESH already",
            "called PUSH already",
            "its number 128 is that of MESH",
            "its number 8 is that of PUSH",
        ];
        for (spec, text) in SPECS.iter().zip(texts) {
            let error = patterns.add(spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AddressInUse);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn a_name_is_a_word() {
        static NAMELESS: TypeFacts = TypeFacts::new("", 129, || &[]);
        static TWO: TypeFacts = TypeFacts::new("TWO WORDS", 129, || &[]);
        static SPECS: [PatternSpec; 2] = [spec(&NAMELESS), spec(&TWO)];
        for spec in &SPECS {
            let error = Patterns::new().add(spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}
