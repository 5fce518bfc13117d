//! The mechanisms that were added to a context, and their options.

use std::borrow::Cow;

use zeroxide_proto::mechanisms::{MECHANISMS, MechanismSpec, Setting};

use super::OptionRow;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The longest name that fits into a greeting.
const NAME_MAX: usize = 20;

/// The added mechanisms of one context.
#[derive(Default)]
pub(crate) struct Mechanisms {
    added: RwLock<Vec<&'static MechanismSpec>>,
}

impl Mechanisms {
    /// Adds a mechanism.
    ///
    /// # Errors
    /// `AddressInUse` if its name, its number or the number of one of its options is taken; `Invalid` if its name does
    /// not fit into a greeting.
    pub(crate) fn add(&self, spec: &'static MechanismSpec) -> Result<()> {
        let name = spec.name;
        let is_allowed = |byte: u8| {
            byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_.+".contains(&byte)
        };
        if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(is_allowed) {
            let text = format!(
                "a mechanism's name has 1 to {NAME_MAX} capitals, digits or -_.+, unlike {name:?}"
            );
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let taken = |what: String, by: &str| {
            let text = format!("{name} cannot be added: {what} is taken by {by}");
            Err(Error::with(ErrorKind::AddressInUse, text))
        };
        for known in MECHANISMS.iter().chain(added.iter()) {
            if known.name == name {
                return taken("its name".to_owned(), "another mechanism");
            }
            if known.number == spec.number {
                return taken(format!("its number {}", spec.number), known.name);
            }
        }
        for (index, setting) in spec.settings.iter().enumerate() {
            let others = &spec.settings[..index];
            let others = others
                .iter()
                .chain(added.iter().flat_map(|spec| spec.settings));
            let mut names = others.map(|other| (other.number, other.name));
            let known = OptionRow::find(setting.number).ok().map(|row| row.name);
            let known = known.or_else(|| {
                names.find_map(|(number, name)| (number == setting.number).then_some(name))
            });
            if let Some(known) = known {
                return taken(
                    format!(
                        "the number {} of its option {}",
                        setting.number, setting.name
                    ),
                    known,
                );
            }
        }
        added.push(spec);
        Ok(())
    }

    /// The row of an option, of an added mechanism or of the table.
    ///
    /// # Errors
    /// `Invalid` if there is none.
    pub(crate) fn row(&self, id: i32) -> Result<Cow<'static, OptionRow>> {
        let built_in = OptionRow::find(id);
        let of = |spec: &&'static MechanismSpec| {
            let spec = *spec;
            let mut settings = spec.settings.iter();
            let setting: Option<&'static Setting> = settings.find(|setting| setting.number == id);
            setting.map(|setting| Cow::Owned(OptionRow::of_mechanism(spec, setting)))
        };
        match built_in {
            Ok(row) => Ok(Cow::Borrowed(row)),
            Err(none) => self.added().iter().find_map(of).ok_or(none),
        }
    }

    /// Whether a mechanism was added, by its name in lower case.
    pub(crate) fn has(&self, capability: &str) -> bool {
        let mut all = self.added().clone().into_iter();
        all.any(|spec| spec.name.to_ascii_lowercase() == capability)
    }

    fn added(&self) -> RwLockReadGuard<'_, Vec<&'static MechanismSpec>> {
        self.added.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::error::CloseReason;
    use zeroxide_proto::mechanisms::{Local, MechanismConfig, SettingKind, Started};

    use super::*;

    fn never(_: &MechanismConfig, _: Local<'_>) -> Started {
        Err(CloseReason::NobodyToAsk("none"))
    }

    const fn named(name: &'static str, number: i32) -> MechanismSpec {
        MechanismSpec::new(name, number, never)
    }

    const fn option(number: i32) -> Setting {
        Setting {
            number,
            name: "SEAL_KEY",
            kind: SettingKind::Text("key"),
            of_client: false,
            doc: "A key.",
        }
    }

    static SEAL: MechanismSpec = MechanismSpec {
        settings: &[option(1500)],
        ..named("SEAL", 100)
    };

    fn refused(spec: &'static MechanismSpec, kind: ErrorKind, text: &str) {
        let mechanisms = Mechanisms::default();
        mechanisms.add(&SEAL).unwrap();
        let error = mechanisms.add(spec).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(mechanisms.added().len(), 1);
    }

    #[test]
    fn options_of_added_mechanisms_are_found() {
        let mechanisms = Mechanisms::default();
        assert!(mechanisms.row(1500).is_err() && !mechanisms.has("seal"));
        mechanisms.add(&SEAL).unwrap();
        assert!(mechanisms.has("seal") && !mechanisms.has("SEAL"));
        assert_eq!(mechanisms.row(1500).unwrap().name, "SEAL_KEY");
        let sndhwm = mechanisms.row(super::super::ids::SNDHWM).unwrap();
        assert_eq!(sndhwm.name, "SNDHWM");
        assert!(mechanisms.row(1501).is_err());
    }

    #[test]
    fn taken_names_and_numbers_are_refused() {
        static SAME_NAME: MechanismSpec = named("SEAL", 101);
        static BUILT_IN_NAME: MechanismSpec = named("PLAIN", 101);
        static SAME_NUMBER: MechanismSpec = named("WAX", 100);
        static BUILT_IN_NUMBER: MechanismSpec = named("WAX", 2);
        let taken = ErrorKind::AddressInUse;
        refused(&SEAL, taken, "SEAL cannot be added: its name is taken");
        refused(&SAME_NAME, taken, "its name is taken by another mechanism");
        refused(&BUILT_IN_NAME, taken, "its name is taken");
        refused(&SAME_NUMBER, taken, "its number 100 is taken by SEAL");
        refused(&BUILT_IN_NUMBER, taken, "its number 2 is taken by CURVE");
    }

    #[test]
    fn taken_numbers_of_options_are_refused() {
        static BUILT_IN: MechanismSpec = MechanismSpec {
            settings: &[option(23)],
            ..named("WAX", 101)
        };
        static ADDED: MechanismSpec = MechanismSpec {
            settings: &[option(1500)],
            ..named("WAX", 101)
        };
        static TWICE: MechanismSpec = MechanismSpec {
            settings: &[option(1501), option(1501)],
            ..named("WAX", 101)
        };
        let taken = ErrorKind::AddressInUse;
        refused(
            &BUILT_IN,
            taken,
            "the number 23 of its option SEAL_KEY is taken by SNDHWM",
        );
        refused(&ADDED, taken, "the number 1500 of its option");
        refused(&TWICE, taken, "the number 1501 of its option");
    }

    #[test]
    fn names_that_no_greeting_can_hold_are_refused() {
        static NAMELESS: MechanismSpec = named("", 101);
        static LONG: MechanismSpec = named("ABCDEFGHIJKLMNOPQRSTU", 101);
        static LOWER: MechanismSpec = named("wax", 101);
        for spec in [&NAMELESS, &LONG, &LOWER] {
            refused(spec, ErrorKind::Invalid, "1 to 20 capitals");
        }
    }
}
