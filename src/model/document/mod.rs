//! Reading the TOML files that people write: `app.toml`, the registry, `huta.toml`.
//!
//! Pure: bytes in, a value or *all* problems out, each with its place. It refuses to show values:
//! no message of this module or of its callers holds a string that stands in a file, since any of
//! them could be a secret (field report 70). Keys are shown when they look like keys.
//!
//! | file | what it does |
//! |---|---|
//! | `decode` | bytes → text: size, byte order mark, encoding, LFS pointers |
//! | `report` | collects problems and finds their lines |
//! | `view` | tables and values that remember where they stand |
//! | `path` | paths as data, and the places they lead to |
//! | `form` | the forms of single values: sizes, durations, names, paths |
//! | `net` | host names, egress entries, web addresses |
//! | `schema` | `schema = 1` |
//! | `unknown` | keys that are not known |
//! | `smoke` | `[[smoke]]`, which the manifest and the registry share |

mod decode;
pub mod form;
pub mod net;
mod path;
mod report;
mod schema;
pub mod smoke;
#[cfg(test)]
mod tests;

mod unknown;
mod view;

pub use decode::{MAX_BYTES, decode};
pub use path::{KeyPath, Step};
pub use report::{Refusal, Report, shown_key};
pub use schema::schema;
pub use view::{Table, Value};

use toml::de::DeTable;

use super::problem::Problems;

/// What a file is called.
#[derive(Debug, Clone, Copy)]
pub struct FileName<'a> {
    /// As the reader knows it, for example `deploy/app.toml`.
    pub file: &'a str,
    /// In front of every message, for example `app.toml`.
    pub label: &'a str,
}

/// Decodes and parses one file and hands its top level to `body`.
///
/// `body` notes every problem it meets on the table it is given; it gives nothing when a value it
/// needs is missing or wrong.
///
/// # Errors
/// All problems: those of the bytes or of the syntax alone, or else everything that `body` noted.
pub fn read<T>(bytes: &[u8], name: FileName<'_>, body: impl FnOnce(&Table<'_>) -> Option<T>) -> Result<T, Problems> {
    let text = decode(bytes, name)?;
    let report = Report::new(name, text);
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            report.syntax(error.message(), error.span().map(|span| span.start));
            return Err(report.into_problems());
        }
    };
    let read = body(&Table::root(&report, root.get_ref()));
    match read {
        Some(value) if report.is_empty() => Ok(value),
        Some(_) | None => Err(report.into_problems()),
    }
}
