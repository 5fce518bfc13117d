//! The Python module `zeroxide_extensions`: a transport, a pattern and a mechanism of other crates for the sockets of
//! `zeroxide`.
//!
//! They have to share one core with the package. So this module contains `zeroxide._native` and takes its place: import it
//! before `zeroxide`, whose other files are those of the same version.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The Python module.
#[pymodule(gil_used = false)]
mod zeroxide_extensions {
    use std::sync::Arc;

    use pyo3::prelude::*;
    use zeroxide_native::Context;
    use zeroxide_udp::Udp;

    #[pymodule_export]
    use zeroxide_native::_native;

    /// The number of the socket type that [`add_mesh`] adds.
    #[pymodule_export]
    const MESH: u8 = zeroxide_mesh::NUMBER;

    /// The options of the mechanism that [`add_token`] adds.
    #[pymodule_export]
    const TOKEN_SERVER: i32 = zeroxide_token::TOKEN_SERVER;
    #[pymodule_export]
    const TOKEN_NAME: i32 = zeroxide_token::TOKEN_NAME;
    #[pymodule_export]
    const TOKEN_SECRET: i32 = zeroxide_token::TOKEN_SECRET;

    /// Adds the transport to a context: its PUSH and PULL sockets can then use endpoints such as
    /// `datagram://127.0.0.1:5555`.
    #[pyfunction]
    fn add_udp(context: &Bound<'_, Context>) -> PyResult<()> {
        context.get().add_transport(Arc::new(Udp))
    }

    /// Adds the pattern to a context, which can then create sockets of the type MESH.
    #[pyfunction]
    fn add_mesh(context: &Bound<'_, Context>) -> PyResult<()> {
        context.get().add_pattern(&zeroxide_mesh::PATTERN)
    }

    /// Adds the mechanism to a context, whose sockets then have the options TOKEN_SERVER, TOKEN_NAME and TOKEN_SECRET.
    #[pyfunction]
    fn add_token(context: &Bound<'_, Context>) -> PyResult<()> {
        context.get().add_mechanism(&zeroxide_token::MECHANISM)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::replace_native(module)
    }
}

/// Makes the core of this module that of the package.
fn replace_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let loaded = module.py().import("sys")?.getattr("modules")?;
    if loaded.contains("zeroxide._native")? {
        let text = "zeroxide was imported first; import zeroxide_extensions before it";
        return Err(PyImportError::new_err(text));
    }
    loaded.set_item("zeroxide._native", module.getattr("_native")?)
}
