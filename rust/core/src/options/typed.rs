//! The methods of sockets and contexts for single options, generated from the rows of their tables.

use std::time::Duration;

use super::Value;
use crate::error::{Error, ErrorKind, Result};

/// A type of an option's value in Rust.
pub(crate) trait Typed: Sized {
    fn encode(self) -> Value;
    /// # Errors
    /// `Invalid`: the option has another type.
    fn decode(value: Value) -> Result<Self>;
}

fn number(value: Value) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(number),
        Value::Bytes(_) => Err(Error::new(ErrorKind::Invalid)),
    }
}

impl Typed for bool {
    fn encode(self) -> Value {
        Value::from(self)
    }

    fn decode(value: Value) -> Result<bool> {
        Ok(number(value)? != 0)
    }
}

macro_rules! typed_numbers {
    ($($number:ty)*) => { $(
        impl Typed for $number {
            fn encode(self) -> Value {
                // A number that is too large stays so: the limits of an option refuse it.
                Value::Int(i64::try_from(self).unwrap_or(i64::MAX))
            }

            fn decode(value: Value) -> Result<$number> {
                <$number>::try_from(number(value)?).map_err(|_| Error::new(ErrorKind::Invalid))
            }
        }
    )* };
}

typed_numbers!(u8 i32 u32 usize);

impl Typed for u64 {
    fn encode(self) -> Value {
        // The bit pattern, which is how these options are passed.
        Value::Int(self as i64)
    }

    fn decode(value: Value) -> Result<u64> {
        Ok(number(value)? as u64)
    }
}

impl Typed for String {
    fn encode(self) -> Value {
        Value::Bytes(self.into_bytes())
    }

    fn decode(value: Value) -> Result<String> {
        match value {
            Value::Bytes(bytes) => {
                String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::Invalid))
            }
            // THREAD_NAME_PREFIX, as in libzmq; 0 stands for none.
            Value::Int(0) => Ok(String::new()),
            Value::Int(number) => Ok(number.to_string()),
        }
    }
}

impl Typed for Vec<u8> {
    fn encode(self) -> Value {
        Value::Bytes(self)
    }

    fn decode(value: Value) -> Result<Vec<u8>> {
        match value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Int(_) => Err(Error::new(ErrorKind::Invalid)),
        }
    }
}

/// A value for which a number stands if there is none.
pub(crate) fn encode_option<T: Typed>(value: Option<T>, none: i64) -> Value {
    value.map_or(Value::Int(none), Typed::encode)
}

pub(crate) fn decode_option<T: Typed>(value: Value, none: i64) -> Result<Option<T>> {
    match value {
        Value::Int(number) if number == none => Ok(None),
        value => T::decode(value).map(Some),
    }
}

/// A time in units; rounded up, because zero often means something else.
pub(crate) fn encode_time(time: Option<Duration>, none: i64, unit: Duration) -> Value {
    let count = |time: Duration| time.as_nanos().div_ceil(unit.as_nanos());
    Value::Int(time.map_or(none, |time| i64::try_from(count(time)).unwrap_or(i64::MAX)))
}

pub(crate) fn decode_time(value: Value, none: i64, unit: Duration) -> Result<Option<Duration>> {
    let number = number(value)?;
    if number == none {
        return Ok(None);
    }
    let count = u32::try_from(number).map_err(|_| Error::new(ErrorKind::Invalid))?;
    Ok(Some(unit * count))
}

pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The methods for one option, in an `impl` of a type that has `set_option` and `get_option`. In brackets are the method
/// that reads, the one that writes after a comma or `=>`, and the type:
///
/// * a type of Rust that is [`Typed`]
/// * `text`, `bytes`, or `key`, which is written as bytes and read as text
/// * `ms` for a time in milliseconds; `ms(N)` and `s(N)` for one that may be missing, which is `N`
/// * `option T(N)` for a value of type `T` that may be missing, which is `N`
macro_rules! typed_option {
    ([] $($rest:tt)*) => {};
    ([$get:ident, $set:ident: $($type:tt)*] $id:expr, $doc:expr) => {
        typed_option!([$get: $($type)*] $id, $doc);
        typed_option!([=> $set: $($type)*] $id, $doc);
    };

    ([$get:ident: text] $id:expr, $doc:expr) => {
        typed_option!(@get $get String, $id, $doc, "", |value| Typed::decode(value));
    };
    ([$get:ident: key] $id:expr, $doc:expr) => {
        typed_option!(@get $get String, $id, $doc, " It is read as text.", |value| Typed::decode(value));
    };
    ([$get:ident: bytes] $id:expr, $doc:expr) => {
        typed_option!(@get $get Vec<u8>, $id, $doc, "", |value| Typed::decode(value));
    };
    ([$get:ident: ms] $id:expr, $doc:expr) => {
        typed_option!(@get $get Duration, $id, $doc, " Here, it is a `Duration`.",
            |value| Ok(typed::decode_time(value, -1, typed::MILLISECOND)?.unwrap_or_default()));
    };
    ([$get:ident: ms($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@get $get Option<Duration>, $id, $doc,
            concat!(" Here, it is a `Duration`, and `None` instead of ", $none, "."),
            |value| typed::decode_time(value, $none, typed::MILLISECOND));
    };
    ([$get:ident: s($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@get $get Option<Duration>, $id, $doc,
            concat!(" Here, it is a `Duration`, and `None` instead of ", $none, "."),
            |value| typed::decode_time(value, $none, typed::SECOND));
    };
    ([$get:ident: option $type:ident($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@get $get Option<$type>, $id, $doc,
            concat!(" Here, it is `None` instead of ", $none, "."),
            |value| typed::decode_option(value, $none));
    };
    ([$get:ident: $type:ident] $id:expr, $doc:expr) => {
        typed_option!(@get $get $type, $id, $doc, "", |value| Typed::decode(value));
    };

    ([=> $set:ident: text] $id:expr, $doc:expr) => {
        typed_option!(@set $set &str, $id, $doc, "", |value| Value::from(value));
    };
    ([=> $set:ident: key] $id:expr, $doc:expr) => {
        typed_option!(@set $set impl AsRef<[u8]>, $id, $doc, "", |value| Value::from(value.as_ref()));
    };
    ([=> $set:ident: bytes] $id:expr, $doc:expr) => {
        typed_option!(@set $set impl AsRef<[u8]>, $id, $doc, "", |value| Value::from(value.as_ref()));
    };
    ([=> $set:ident: ms] $id:expr, $doc:expr) => {
        typed_option!(@set $set Duration, $id, $doc, " Here, it is a `Duration`.",
            |value| typed::encode_time(Some(value), -1, typed::MILLISECOND));
    };
    ([=> $set:ident: ms($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@set $set Option<Duration>, $id, $doc,
            concat!(" Here, it is a `Duration`, and `None` instead of ", $none, "."),
            |value| typed::encode_time(value, $none, typed::MILLISECOND));
    };
    ([=> $set:ident: s($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@set $set Option<Duration>, $id, $doc,
            concat!(" Here, it is a `Duration`, and `None` instead of ", $none, "."),
            |value| typed::encode_time(value, $none, typed::SECOND));
    };
    ([=> $set:ident: option $type:ident($none:literal)] $id:expr, $doc:expr) => {
        typed_option!(@set $set Option<$type>, $id, $doc,
            concat!(" Here, it is `None` instead of ", $none, "."),
            |value| typed::encode_option(value, $none));
    };
    ([=> $set:ident: $type:ident] $id:expr, $doc:expr) => {
        typed_option!(@set $set $type, $id, $doc, "", |value| Typed::encode(value));
    };

    (@get $get:ident $type:ty, $id:expr, $doc:expr, $note:expr, |$value:ident| $decoded:expr) => {
        #[doc = concat!("Reads [`", stringify!($id), "`](crate::", stringify!($id), "). ", $doc, $note)]
        ///
        /// # Errors
        /// As [`get_option`](Self::get_option).
        pub fn $get(&self) -> Result<$type> {
            let $value = self.get_option($id)?;
            $decoded
        }
    };
    (@set $set:ident $type:ty, $id:expr, $doc:expr, $note:expr, |$value:ident| $encoded:expr) => {
        #[doc = concat!("Sets [`", stringify!($id), "`](crate::", stringify!($id), "). ", $doc, $note)]
        ///
        /// # Errors
        /// As [`set_option`](Self::set_option).
        pub fn $set(&self, $value: $type) -> Result<()> {
            self.set_option($id, &$encoded)
        }
    };
}

pub(crate) use typed_option;
