//! The options of a context.

use std::collections::BTreeSet;

use self::context_ids::*;
use super::Value;
use crate::error::{Error, ErrorKind, Result};
use crate::sys::thread::ThreadSettings;

/// The value of SOCKET_LIMIT. Neither libzmq nor this crate limits MAX_SOCKETS to it.
const SOCKET_LIMIT: i64 = 65535;
/// A prefix longer than this would leave no room for the rest of the name that the kernel shows.
const LONGEST_PREFIX: usize = 16;

/// One option of a context.
#[derive(Debug)]
pub struct ContextRow {
    /// As in `zmq.h`, without the prefix.
    pub name: &'static str,
    /// The number in `zmq.h`. Two options share 3: one can only be read, the other only written.
    pub id: i32,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Its effect, in a sentence.
    pub doc: &'static str,
}

const fn row(id: i32, name: &'static str, access: &str, doc: &'static str) -> ContextRow {
    let access = access.as_bytes();
    ContextRow {
        name,
        id,
        readable: access[0] == b'r',
        writable: access[access.len() - 1] == b'w',
        doc,
    }
}

/// Passes the rows to a macro: the number, the name, the methods of `Context` (see
/// [`typed_option`](super::typed::typed_option)), whether it is read and written, and its effect. Two options share 3: one
/// can only be read, the other only written.
macro_rules! context_options {
    ($then:ident) => {
        $then! {
            1 IO_THREADS [io_threads, set_io_threads: usize] rw: "How many I/O threads serve the sockets; fixed when the first socket is created. 0 is enough for inproc.",
            2 MAX_SOCKETS [max_sockets, set_max_sockets: usize] rw: "How many sockets may be open at a time.",
            3 SOCKET_LIMIT [socket_limit: usize] r: "libzmq's maximum number of sockets; MAX_SOCKETS may be larger.",
            3 THREAD_PRIORITY [=> set_thread_priority: i32] w: "The scheduling priority of the I/O threads; the default is the system's.",
            4 THREAD_SCHED_POLICY [thread_sched_policy, set_thread_sched_policy: i32] rw: "The scheduling policy of the I/O threads (SCHED_*); -1, the system's, can only be read.",
            5 MAX_MSGSZ [max_msgsz, set_max_msgsz: i32] rw: "Stored without effect, for programs that read it back; the socket option MAXMSGSIZE is the limit.",
            6 MSG_T_SIZE [msg_t_size: usize] r: "The size of libzmq's message structure, 64; zeroxide does not use it.",
            7 THREAD_AFFINITY_CPU_ADD [=> set_thread_affinity_cpu_add: usize] w: "One more CPU for the I/O threads to run on.",
            8 THREAD_AFFINITY_CPU_REMOVE [=> set_thread_affinity_cpu_remove: usize] w: "One CPU less for the I/O threads to run on.",
            9 THREAD_NAME_PREFIX [thread_name_prefix, set_thread_name_prefix: text] rw: "The prefix of the I/O threads' names; a number or up to 16 bytes.",
            10 ZERO_COPY_RECV [zero_copy_recv, set_zero_copy_recv: bool] rw: "Stored without effect, for programs that read it back; large messages are always received without a copy.",
            42 IPV6 [ipv6, set_ipv6: bool] rw: "The default of the IPV6 option of new sockets.",
            // libzmq has no such option. Our own options of sockets begin at 1001, those of contexts at 1101.
            1101 MEMORY_BUDGET [memory_budget, set_memory_budget: u64] rw: "How many bytes the messages and topics of all peers together may take: incomplete messages, those not received yet, and topics that peers have subscribed to. 0 = no limit.",
            70 BLOCKY [blocky, set_blocky: bool] rw: "0 makes LINGER 0 the default of new sockets, so that terminating never waits for peers.",
        }
    };
}

pub(crate) use context_options;

macro_rules! options_table {
    ($($id:literal $name:ident [$($typed:tt)*] $access:ident: $doc:literal,)*) => {
        /// The numbers of the options of contexts, as in `zmq.h`.
        pub mod context_ids {
            $(#[doc = $doc] pub const $name: i32 = $id;)*
        }

        /// Every option of a context.
        pub static CONTEXT_OPTIONS: &[ContextRow] =
            &[$(row($id, stringify!($name), stringify!($access), $doc),)*];
    };
}

context_options!(options_table);

/// The options of a context, and through it the defaults of its sockets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextOptions {
    /// IO_THREADS
    pub io_threads: usize,
    /// MAX_SOCKETS
    pub max_sockets: usize,
    /// IPV6: the default of new sockets.
    pub ipv6: bool,
    /// BLOCKY: whether new sockets linger by default.
    pub blocky: bool,
    /// THREAD_NAME_PREFIX
    pub thread_name_prefix: String,
    /// THREAD_PRIORITY: `None` = the system's.
    pub thread_priority: Option<i32>,
    /// THREAD_SCHED_POLICY: `None` = the system's.
    pub thread_sched_policy: Option<i32>,
    /// THREAD_AFFINITY_CPU_ADD and _REMOVE: empty = any CPU.
    pub thread_cpus: BTreeSet<usize>,
    /// MAX_MSGSZ
    pub max_msgsz: i32,
    /// ZERO_COPY_RECV
    pub zero_copy_recv: bool,
    /// MEMORY_BUDGET: 0 = no limit, `None` = three quarters of the memory available to the process.
    pub memory_budget: Option<u64>,
}

impl Default for ContextOptions {
    fn default() -> ContextOptions {
        ContextOptions {
            io_threads: 1,
            max_sockets: 1023,
            ipv6: false,
            blocky: true,
            thread_name_prefix: String::new(),
            thread_priority: None,
            thread_sched_policy: None,
            thread_cpus: BTreeSet::new(),
            max_msgsz: i32::MAX,
            zero_copy_recv: true,
            memory_budget: None,
        }
    }
}

impl ContextOptions {
    /// Checks and stores a value.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, it cannot be written, or the value is not allowed.
    pub fn set(&mut self, id: i32, value: &Value) -> Result<()> {
        match id {
            IO_THREADS => self.io_threads = number(id, value, 0, 1024)? as usize,
            MAX_SOCKETS => self.max_sockets = number(id, value, 1, i32::MAX.into())? as usize,
            THREAD_PRIORITY => self.thread_priority = Some(natural(id, value)?),
            THREAD_SCHED_POLICY => self.thread_sched_policy = Some(natural(id, value)?),
            MAX_MSGSZ => self.max_msgsz = number(id, value, 0, i32::MAX.into())? as i32,
            THREAD_AFFINITY_CPU_ADD => {
                self.thread_cpus
                    .insert(number(id, value, 0, 1023)? as usize);
            }
            THREAD_AFFINITY_CPU_REMOVE => {
                let cpu = number(id, value, 0, 1023)? as usize;
                if !self.thread_cpus.remove(&cpu) {
                    return Err(invalid(
                        id,
                        &format!("names CPU {cpu}, which was never added"),
                    ));
                }
            }
            THREAD_NAME_PREFIX => self.thread_name_prefix = prefix(id, value)?,
            ZERO_COPY_RECV => self.zero_copy_recv = flag(id, value)?,
            IPV6 => self.ipv6 = flag(id, value)?,
            BLOCKY => self.blocky = flag(id, value)?,
            MEMORY_BUDGET => {
                let bytes = number(id, value, -1, i64::MAX)?;
                self.memory_budget = Some(u64::try_from(bytes).unwrap_or(0));
            }
            MSG_T_SIZE => return Err(invalid(id, "can only be read")),
            _ => return Err(unknown(id)),
        }
        Ok(())
    }

    /// The value of an option.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or it cannot be read.
    pub fn get(&self, id: i32) -> Result<Value> {
        Ok(Value::Int(match id {
            IO_THREADS => self.io_threads as i64,
            MAX_SOCKETS => self.max_sockets as i64,
            // SOCKET_LIMIT has the same number, and reading the number means that option.
            THREAD_PRIORITY => SOCKET_LIMIT,
            THREAD_SCHED_POLICY => self.thread_sched_policy.unwrap_or(-1).into(),
            MAX_MSGSZ => self.max_msgsz.into(),
            MSG_T_SIZE => 64,
            THREAD_NAME_PREFIX => match self.thread_name_prefix.as_str() {
                "" => 0,
                text => match text.parse() {
                    Ok(number) => number,
                    Err(_) => return Ok(Value::from(text)),
                },
            },
            ZERO_COPY_RECV => self.zero_copy_recv.into(),
            IPV6 => self.ipv6.into(),
            BLOCKY => self.blocky.into(),
            MEMORY_BUDGET => {
                let bytes = self.memory_budget.unwrap_or(0);
                i64::try_from(bytes).unwrap_or(i64::MAX)
            }
            THREAD_AFFINITY_CPU_ADD | THREAD_AFFINITY_CPU_REMOVE => {
                return Err(invalid(id, "can only be written"));
            }
            _ => return Err(unknown(id)),
        }))
    }

    /// The settings of the I/O thread with this index.
    pub(crate) fn thread_settings(&self, index: usize) -> ThreadSettings {
        let separator = if self.thread_name_prefix.is_empty() {
            ""
        } else {
            "/"
        };
        ThreadSettings {
            name: format!("{}{separator}ZMQbg/IO/{index}", self.thread_name_prefix),
            priority: self.thread_priority,
            policy: self.thread_sched_policy,
            cpus: self.thread_cpus.iter().copied().collect(),
        }
    }
}

fn number(id: i32, value: &Value, low: i64, high: i64) -> Result<i64> {
    match value {
        Value::Int(number) if (low..=high).contains(number) => Ok(*number),
        Value::Int(number) => Err(invalid(id, &format!("takes {low} to {high}, not {number}"))),
        Value::Bytes(_) => Err(invalid(id, "takes a number, not bytes")),
    }
}

/// As in libzmq, any number except 0 means true.
fn flag(id: i32, value: &Value) -> Result<bool> {
    Ok(number(id, value, 0, i32::MAX.into())? != 0)
}

fn natural(id: i32, value: &Value) -> Result<i32> {
    Ok(number(id, value, 0, i32::MAX.into())? as i32)
}

fn prefix(id: i32, value: &Value) -> Result<String> {
    let text = match value {
        Value::Int(_) => number(id, value, i32::MIN.into(), i32::MAX.into())?.to_string(),
        Value::Bytes(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| invalid(id, "takes UTF-8"))?
        }
    };
    if text.len() > LONGEST_PREFIX || text.contains('\0') {
        return Err(invalid(
            id,
            &format!("takes at most {LONGEST_PREFIX} bytes, none of them zero"),
        ));
    }
    Ok(text)
}

fn invalid(id: i32, why: &str) -> Error {
    let row = CONTEXT_OPTIONS.iter().rfind(|row| row.id == id);
    Error::with(
        ErrorKind::Invalid,
        format!("{} {why}", row.map_or("the option", |row| row.name)),
    )
}

fn unknown(id: i32) -> Error {
    Error::with(
        ErrorKind::Invalid,
        format!("there is no context option {id}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(number: i64) -> Value {
        Value::Int(number)
    }

    #[test]
    fn every_row_has_the_documented_effect() {
        for row in CONTEXT_OPTIONS {
            let mut options = ContextOptions::default();
            assert_eq!(
                options.get(row.id).is_ok(),
                row.readable || row.name == "THREAD_PRIORITY",
                "{}",
                row.name
            );
            if row.id == THREAD_AFFINITY_CPU_REMOVE {
                options.set(THREAD_AFFINITY_CPU_ADD, &int(1)).unwrap();
            }
            let set = options.set(row.id, &int(1)).is_ok();
            assert_eq!(
                set,
                row.writable || row.name == "SOCKET_LIMIT",
                "{}",
                row.name
            );
            // Any number is a valid name.
            let takes = row.id == THREAD_NAME_PREFIX;
            let set = options.set(row.id, &int(-2)).is_ok();
            assert_eq!(set, takes, "{}", row.name);
        }
    }

    /// libzmq's numbers overlap. Ours must not, so that setting an option on the wrong object fails.
    #[test]
    fn no_two_options_of_ours_share_a_number() {
        let sockets = crate::options::SOCKET_OPTIONS.iter().map(|row| row.id);
        let ids = sockets.chain(CONTEXT_OPTIONS.iter().map(|row| row.id));
        let ids: Vec<i32> = ids.filter(|id| *id >= 1000).collect();
        let different: BTreeSet<i32> = ids.iter().copied().collect();
        assert_eq!(ids.len(), different.len(), "{ids:?}");
        assert!(ids.contains(&MEMORY_BUDGET));
    }

    #[test]
    fn defaults_are_libzmqs() {
        let options = ContextOptions::default();
        let expected = [
            (1, 1),
            (2, 1023),
            (3, 65535),
            (4, -1),
            (5, i32::MAX.into()),
            (6, 64),
            (9, 0),
            (10, 1),
            (42, 0),
            (70, 1),
        ];
        for (id, value) in expected {
            assert_eq!(options.get(id).unwrap(), int(value), "option {id}");
        }
        assert!(options.get(11).is_err() && options.get(-1).is_err());
    }

    #[test]
    fn the_default_of_the_system_cannot_be_set_for_threads() {
        let mut options = ContextOptions::default();
        for id in [THREAD_PRIORITY, THREAD_SCHED_POLICY] {
            assert!(options.set(id, &int(-1)).is_err());
            options.set(id, &int(0)).unwrap();
        }
        options.set(THREAD_NAME_PREFIX, &int(-1)).unwrap();
        assert_eq!(options.get(THREAD_NAME_PREFIX).unwrap(), int(-1));
    }

    #[test]
    fn any_number_but_zero_is_yes() {
        let mut options = ContextOptions::default();
        for id in [ZERO_COPY_RECV, IPV6, BLOCKY] {
            for (value, read) in [(2, 1), (0, 0), (1, 1)] {
                options.set(id, &int(value)).unwrap();
                assert_eq!(options.get(id).unwrap(), int(read));
            }
            assert!(options.set(id, &int(-1)).is_err());
        }
    }

    #[test]
    fn threads_are_set_up_as_asked() {
        let mut options = ContextOptions::default();
        assert_eq!(options.thread_settings(0).name, "ZMQbg/IO/0");
        options.set(THREAD_NAME_PREFIX, &int(1234)).unwrap();
        assert_eq!(options.get(THREAD_NAME_PREFIX).unwrap(), int(1234));
        options
            .set(THREAD_NAME_PREFIX, &Value::from("app"))
            .unwrap();
        assert_eq!(options.get(THREAD_NAME_PREFIX).unwrap(), Value::from("app"));
        for cpu in [3, 1, 3] {
            options.set(THREAD_AFFINITY_CPU_ADD, &int(cpu)).unwrap();
        }
        options.set(THREAD_PRIORITY, &int(5)).unwrap();
        let settings = options.thread_settings(2);
        assert_eq!(
            (settings.name.as_str(), settings.cpus, settings.priority),
            ("app/ZMQbg/IO/2", vec![1, 3], Some(5))
        );
        options.set(THREAD_AFFINITY_CPU_REMOVE, &int(3)).unwrap();
        assert!(options.set(THREAD_AFFINITY_CPU_REMOVE, &int(3)).is_err());
        assert!(
            options
                .set(THREAD_NAME_PREFIX, &Value::from("seventeen letters"))
                .is_err()
        );
    }
}
