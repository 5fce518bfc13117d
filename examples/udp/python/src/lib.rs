//! The Python module `zeroxide_udp`: a transport of another crate for the sockets of `zeroxide`.
//!
//! Both have to share one core. So this module contains `zeroxide._native` and takes its place: import it before
//! `zeroxide`, whose other files are those of the same version.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The Python module.
#[pymodule(gil_used = false)]
mod zeroxide_udp {
    use std::sync::Arc;

    use pyo3::prelude::*;
    use zeroxide_native::Context;
    use zeroxide_udp_transport::Udp;

    #[pymodule_export]
    use zeroxide_native::_native;

    /// Adds the transport to a context: its PUSH and PULL sockets can then use endpoints such as
    /// `udp://127.0.0.1:5555`.
    #[pyfunction]
    fn add_to(context: &Bound<'_, Context>) -> PyResult<()> {
        context.get().add_transport(Arc::new(Udp))
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
        let text = "zeroxide was imported first; import zeroxide_udp before it";
        return Err(PyImportError::new_err(text));
    }
    loaded.set_item("zeroxide._native", module.getattr("_native")?)
}
