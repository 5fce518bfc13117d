//! Certificates: text files with a public key, as pyzmq and czmq write them.
//!
//! ```text
//! metadata
//!     name = "alice"
//! curve
//!     public-key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
//! ```

use std::fs;
use std::path::Path;

use super::{Key, parse_key};
use crate::error::{Error, ErrorKind, Result};

/// The keys of all `*.key` files in a folder, each with the name in its metadata, or else the name of the file.
pub(super) fn read(folder: &Path) -> Result<Vec<(Key, String)>> {
    let about = |path: &Path, error: std::io::Error| {
        let kind = Error::from(error).kind();
        Error::with(kind, format!("{}", path.display()))
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| about(folder, error))? {
        let path = entry.map_err(|error| about(folder, error))?.path();
        if path.extension().is_none_or(|extension| extension != "key") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| about(&path, error))?;
        let (key, name) = parse(&text).map_err(|why| {
            let text = format!("{} is not a certificate: {why}", path.display());
            Error::with(ErrorKind::Invalid, text)
        })?;
        let stem = || {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
        };
        found.push((key, name.or_else(stem).unwrap_or_default()));
    }
    Ok(found)
}

/// The public key, and the name if there is one.
fn parse(text: &str) -> std::result::Result<(Key, Option<String>), String> {
    let mut section = "";
    let (mut key, mut name) = (None, None);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let Some((field, value)) = trimmed.split_once('=') else {
            section = trimmed;
            continue;
        };
        let value = value.trim().trim_matches('"');
        match (section, field.trim()) {
            ("metadata", "name") => name = Some(value.to_owned()),
            ("curve", "public-key") => {
                let digits = parse_key(value.as_bytes()).map_err(|error| error.to_string())?;
                key = Some(digits);
            }
            _ => {}
        }
    }
    let key = key.ok_or("there is no public-key under curve")?;
    Ok((key, name.filter(|name| !name.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";

    #[test]
    fn a_certificate_has_a_key_and_perhaps_a_name() {
        let curve = format!("curve\n    public-key = \"{KEY}\"\n");
        let key = parse_key(KEY.as_bytes()).unwrap();
        assert_eq!(parse(&curve), Ok((key, None)));
        let named = format!("# name = x\nmetadata\n\tname = \"bob = 1\"\n{curve}");
        assert_eq!(parse(&named), Ok((key, Some("bob = 1".to_owned()))));
        for wrong in [
            "",
            "metadata\n",
            "curve\n public-key = \"short\"\n",
            &format!("public-key = {KEY}"),
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
