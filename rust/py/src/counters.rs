//! Counters as dictionaries. A field has the same name in both, so that adding one takes a single word.

/// Puts fields of a struct into a dictionary: `fill!(dict, stats => sent, received)`.
macro_rules! fill {
    ($dict:expr, $counters:expr => $($name:ident),+ $(,)?) => {
        $($dict.set_item(::pyo3::intern!($dict.py(), stringify!($name)), &$counters.$name)?;)+
    };
}

pub(crate) use fill;
