//! Keys and passwords: access control.

use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyMapping, PyString};
use zeroxide::{AllowList as CoreAllowList, Key, Passwords as CorePasswords, z85};

use crate::arguments;
use crate::error::raise;

const KEYS: &str = "a list of keys is expected, a dict {key: name}, a folder, or '*'";
const USERS: &str = "users and passwords are a mapping: {user: password}";

/// The value of `allow` that admits every client.
const ANYBODY: &str = "*";

#[doc = text!(curve_keypair)]
#[pyfunction]
pub(crate) fn curve_keypair(py: Python<'_>) -> PyResult<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)> {
    let (public, secret) = zeroxide::curve_keypair().map_err(raise)?;
    Ok((text(py, &public), text(py, &secret)))
}

#[doc = text!(curve_public)]
#[pyfunction]
pub(crate) fn curve_public<'py>(secret_key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let (length, secret) = match octets(secret_key)? {
        Some(octets) => (octets.len(), zeroxide::parse_key(&octets)),
        None => {
            let problem = format!("expected bytes or str, got: {}", secret_key.repr()?);
            return Err(PyTypeError::new_err(problem));
        }
    };
    match secret {
        Ok(secret) if length == 40 => Ok(text(secret_key.py(), &zeroxide::curve_public(&secret))),
        _ => Err(PyValueError::new_err(
            "a secret key is 40 characters of Z85",
        )),
    }
}

fn text<'py>(py: Python<'py>, key: &Key) -> Bound<'py, PyBytes> {
    let digits = z85::encode(key).expect("32 is a multiple of 4");
    PyBytes::new(py, digits.as_bytes())
}

fn octets(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(arguments::text(text)?.as_bytes().to_vec()));
    }
    Ok(value
        .cast::<PyBytes>()
        .ok()
        .map(|bytes| bytes.as_bytes().to_vec()))
}

/// A key as Python gives it: 32 bytes, or 40 characters of Z85 as bytes or str.
pub(crate) fn key(value: &Bound<'_, PyAny>) -> PyResult<Key> {
    match octets(value)? {
        Some(octets) => zeroxide::parse_key(&octets).map_err(raise),
        None => Err(PyTypeError::new_err(format!(
            "a key is bytes or str, not {}",
            value.get_type().name()?
        ))),
    }
}

/// A key of a mapping and its value, or an item alone.
type Entry<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// The items of a mapping or of anything else.
fn entries<'py>(values: &Bound<'py, PyAny>, takes: &str) -> PyResult<Vec<Entry<'py>>> {
    if let Ok(mapping) = values.cast::<PyMapping>() {
        let pair = |item: Bound<'py, PyAny>| {
            let (key, value) = item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
            Ok((key, Some(value)))
        };
        return mapping.items()?.iter().map(pair).collect();
    }
    let items = arguments::items(values, takes)?;
    items.map(|item| Ok((item?, None))).collect()
}

fn named_keys(values: &Bound<'_, PyAny>) -> PyResult<Vec<(Key, String)>> {
    let mut keys = Vec::new();
    for (owner, name) in entries(values, KEYS)? {
        let name = name.map_or(Ok(String::new()), |name| arguments::name(&name))?;
        keys.push((key(&owner)?, name));
    }
    Ok(keys)
}

#[doc = text!(AllowList)]
#[pyclass(frozen, module = "zeroxide.auth")]
pub(crate) struct AllowList {
    core: CoreAllowList,
}

impl AllowList {
    /// Converts any form of a list: an `AllowList`, the value for every client, a folder, or keys.
    pub(crate) fn from_any(value: Option<&Bound<'_, PyAny>>) -> PyResult<CoreAllowList> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(CoreAllowList::new());
        };
        if let Ok(list) = value.cast::<AllowList>() {
            return Ok(list.get().core.clone());
        }
        if value.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(
                "a list of keys is expected, not one: [key]",
            ));
        }
        if value.cast::<PyString>().is_ok_and(|text| text == ANYBODY) {
            return Ok(CoreAllowList::anybody());
        }
        if value.is_instance_of::<PyString>() || value.hasattr("__fspath__")? {
            let folder = value.extract::<PathBuf>()?;
            return CoreAllowList::folder(folder).map_err(raise);
        }
        let list = CoreAllowList::new();
        list.replace(named_keys(value)?);
        Ok(list)
    }

    fn settle(&self, disconnect: bool) {
        if disconnect {
            self.core.disconnect_strangers();
        }
    }
}

impl From<CoreAllowList> for AllowList {
    fn from(core: CoreAllowList) -> AllowList {
        AllowList { core }
    }
}

#[pymethods]
impl AllowList {
    #[new]
    #[pyo3(signature = (allow=None, /))]
    fn new(allow: Option<&Bound<'_, PyAny>>) -> PyResult<AllowList> {
        AllowList::from_any(allow).map(AllowList::from)
    }

    #[doc = text!(AllowList::add)]
    #[pyo3(signature = (public_key, name=String::new()), text_signature = "($self, public_key, name='')")]
    fn add(
        &self,
        public_key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::name)] name: String,
    ) -> PyResult<()> {
        self.core.add(key(public_key)?, &name);
        Ok(())
    }

    #[doc = text!(AllowList::remove)]
    #[pyo3(signature = (public_key, *, disconnect=false))]
    fn remove(
        &self,
        public_key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::disconnect)] disconnect: bool,
    ) -> PyResult<bool> {
        let was_there = self.core.remove(&key(public_key)?);
        self.settle(disconnect);
        Ok(was_there)
    }

    #[doc = text!(AllowList::replace)]
    #[pyo3(signature = (keys, *, disconnect=false))]
    fn replace(
        &self,
        keys: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::disconnect)] disconnect: bool,
    ) -> PyResult<()> {
        self.core.replace(named_keys(keys)?);
        self.settle(disconnect);
        Ok(())
    }

    #[doc = text!(AllowList::reload)]
    #[pyo3(signature = (*, disconnect=false))]
    fn reload(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::disconnect)] disconnect: bool,
    ) -> PyResult<usize> {
        let count = py.detach(|| self.core.reload()).map_err(raise)?;
        self.settle(disconnect);
        Ok(count)
    }

    #[doc = text!(AllowList::disconnect_strangers)]
    fn disconnect_strangers(&self) -> usize {
        self.core.disconnect_strangers()
    }

    #[doc = text!(AllowList::anybody)]
    #[getter]
    fn anybody(&self) -> bool {
        self.core.admits_anybody()
    }

    #[doc = text!(AllowList::names)]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        for (key, name) in self.core.keys() {
            names.set_item(text(py, &key), name)?;
        }
        Ok(names)
    }

    fn __contains__(&self, public_key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.core.contains(&key(public_key)?))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.names(py)?.try_iter()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// A list that admits every client is not empty.
    fn __bool__(&self) -> bool {
        self.core.admits_anybody() || !self.core.is_empty()
    }

    fn __repr__(&self) -> String {
        format!("<zeroxide.auth.{:?}>", self.core)
    }
}

#[doc = text!(Passwords)]
#[pyclass(frozen, module = "zeroxide.auth")]
pub(crate) struct Passwords {
    core: CorePasswords,
}

impl Passwords {
    /// Converts an existing table, or a mapping.
    pub(crate) fn from_any(value: Option<&Bound<'_, PyAny>>) -> PyResult<CorePasswords> {
        let table = CorePasswords::new();
        match value.filter(|value| !value.is_none()) {
            None => {}
            Some(value) => match value.cast::<Passwords>() {
                Ok(table) => return Ok(table.get().core.clone()),
                Err(_) => table.replace(named_passwords(value)?),
            },
        }
        Ok(table)
    }

    fn settle(&self, disconnect: bool) {
        if disconnect {
            self.core.disconnect_strangers();
        }
    }
}

impl From<CorePasswords> for Passwords {
    fn from(core: CorePasswords) -> Passwords {
        Passwords { core }
    }
}

/// A password as Python gives it.
pub(crate) fn password(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    octets(value)?.ok_or_else(|| PyTypeError::new_err("a password is bytes or str"))
}

fn named_passwords(users: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Vec<u8>)>> {
    let mut table = Vec::new();
    for (user, secret) in entries(users, USERS)? {
        let Some(secret) = secret else {
            return Err(PyTypeError::new_err(USERS));
        };
        table.push((arguments::user(&user)?, password(&secret)?));
    }
    Ok(table)
}

#[pymethods]
impl Passwords {
    #[new]
    #[pyo3(signature = (users=None, /))]
    fn new(users: Option<&Bound<'_, PyAny>>) -> PyResult<Passwords> {
        Passwords::from_any(users).map(Passwords::from)
    }

    #[doc = text!(Passwords::add)]
    #[pyo3(signature = (user, password))]
    fn add(
        &self,
        #[pyo3(from_py_with = arguments::user)] user: String,
        password: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.core.add(&user, self::password(password)?);
        Ok(())
    }

    #[doc = text!(Passwords::remove)]
    #[pyo3(signature = (user, *, disconnect=false))]
    fn remove(
        &self,
        #[pyo3(from_py_with = arguments::user)] user: String,
        #[pyo3(from_py_with = arguments::disconnect)] disconnect: bool,
    ) -> bool {
        let was_there = self.core.remove(&user);
        self.settle(disconnect);
        was_there
    }

    #[doc = text!(Passwords::replace)]
    #[pyo3(signature = (users, *, disconnect=false))]
    fn replace(
        &self,
        users: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::disconnect)] disconnect: bool,
    ) -> PyResult<()> {
        self.core.replace(named_passwords(users)?);
        self.settle(disconnect);
        Ok(())
    }

    #[doc = text!(Passwords::disconnect_strangers)]
    fn disconnect_strangers(&self) -> usize {
        self.core.disconnect_strangers()
    }

    fn __contains__(&self, #[pyo3(from_py_with = arguments::user)] user: String) -> bool {
        self.core.contains(&user)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.core.users().into_pyobject(py)?.into_any().try_iter()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __repr__(&self) -> String {
        format!("<zeroxide.auth.{:?}>", self.core)
    }
}
