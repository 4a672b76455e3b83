//! One pool of connections to the database file: how a question is asked, how a row is read, and
//! what an engine's error means.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqlitePool, SqliteRow};
use sqlx::{Row as _, query::Query};

use crate::model::{ReleaseNumber, TargetName};
use crate::store::StoreError;

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Connections to the one database file.
///
/// Every write is one statement that commits itself, so a full disk or a dropped future can never
/// leave half of it, and its durability is known when it returns.
#[derive(Debug)]
pub(super) struct Db {
    /// The connections.
    pub(super) pool: SqlitePool,
    /// The database file, for messages.
    pub(super) path: String,
}

impl Db {
    /// Runs a statement; gives the number of rows that it changed.
    pub(super) async fn run(&self, what: &'static str, statement: Statement<'_>) -> Result<u64, StoreError> {
        let done = statement.execute(&self.pool).await;
        let done = done.map_err(|error| failed(&self.path, what, error))?;
        Ok(done.rows_affected())
    }

    /// Asks for rows and reads each.
    ///
    /// Always steps to the end: a `RETURNING` commits at its last step, and whoever stops after
    /// the first row never learns that the commit failed.
    pub(super) async fn all<T>(
        &self,
        what: &'static str,
        statement: Statement<'_>,
        read: fn(&SqliteRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = statement.fetch_all(&self.pool).await;
        let rows = rows.map_err(|error| failed(&self.path, what, error))?;
        rows.iter().map(read).collect()
    }

    /// Asks for at most one row and reads it.
    pub(super) async fn first<T>(
        &self,
        what: &'static str,
        statement: Statement<'_>,
        read: fn(&SqliteRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.all(what, statement, read).await?.into_iter().next())
    }
}

/// Says what an engine's error means for us.
///
/// Source: SQLite result codes; the low byte is the primary code, `SQLITE_IOERR_SHMSIZE` is how
/// a full disk shows itself when the write-ahead log's index grows.
pub(super) fn failed(path: &str, what: &'static str, error: sqlx::Error) -> StoreError {
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const NOT_A_DATABASE: i32 = 26;
    const IOERR_SHMSIZE: i32 = 4874;
    let code = error.as_database_error().and_then(|error| error.code()).and_then(|code| code.parse::<i32>().ok());
    match code {
        Some(FULL | IOERR_SHMSIZE) => StoreError::Full { what, path: path.to_owned() },
        Some(code) if matches!(code & 0xff, CORRUPT | NOT_A_DATABASE) => {
            StoreError::Damaged { path: path.to_owned(), detail: error.to_string() }
        }
        Some(_) | None => StoreError::Engine { what, source: Box::new(error) },
    }
}

/// A row being read as one record.
pub(super) struct Fields<'r> {
    row: &'r SqliteRow,
    what: &'static str,
}

impl<'r> Fields<'r> {
    pub(super) fn of(row: &'r SqliteRow, what: &'static str) -> Self {
        Self { row, what }
    }

    /// The error for a row that is not what we wrote.
    pub(super) fn corrupt(&self, column: &str, why: &dyn Display) -> StoreError {
        StoreError::Corrupt { what: self.what, detail: format!("`{column}`: {why}") }
    }

    fn get<T>(&self, column: &str) -> Result<T, StoreError>
    where
        T: sqlx::Type<Sqlite> + sqlx::Decode<'r, Sqlite>,
    {
        self.row.try_get(column).map_err(|error| self.corrupt(column, &error))
    }

    pub(super) fn text(&self, column: &str) -> Result<String, StoreError> {
        self.get(column)
    }

    pub(super) fn maybe_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, StoreError> {
        match self.get::<i64>(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.corrupt(column, &format!("{other} is neither 0 nor 1"))),
        }
    }

    pub(super) fn count<T: TryFrom<i64>>(&self, column: &str) -> Result<T, StoreError> {
        let found: i64 = self.get(column)?;
        T::try_from(found).map_err(|_| self.corrupt(column, &format!("{found} is out of range")))
    }

    pub(super) fn maybe_integer(&self, column: &str) -> Result<Option<i64>, StoreError> {
        self.get(column)
    }

    pub(super) fn number(&self, column: &str) -> Result<ReleaseNumber, StoreError> {
        Ok(ReleaseNumber(self.count(column)?))
    }

    pub(super) fn maybe_number(&self, column: &str) -> Result<Option<ReleaseNumber>, StoreError> {
        match self.get::<Option<i64>>(column)? {
            Some(_) => self.number(column).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        let found: i64 = self.get(column)?;
        Timestamp::from_microsecond(found).map_err(|error| self.corrupt(column, &error))
    }

    pub(super) fn maybe_time(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        match self.get::<Option<i64>>(column)? {
            Some(_) => self.time(column).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn parsed<T>(&self, column: &str) -> Result<T, StoreError>
    where
        T: FromStr<Err: Display>,
    {
        self.text(column)?.parse().map_err(|error| self.corrupt(column, &error))
    }

    pub(super) fn maybe_parsed<T>(&self, column: &str) -> Result<Option<T>, StoreError>
    where
        T: FromStr<Err: Display>,
    {
        self.maybe_text(column)?.map(|text| text.parse().map_err(|error| self.corrupt(column, &error))).transpose()
    }

    pub(super) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        serde_json::from_str(&self.text(column)?).map_err(|error| self.corrupt(column, &error))
    }

    pub(super) fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        self.maybe_text(column)?
            .map(|text| serde_json::from_str(&text).map_err(|error| self.corrupt(column, &error)))
            .transpose()
    }

    /// A word of one of our enumerations.
    pub(super) fn word<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        serde_json::from_value(serde_json::Value::String(self.text(column)?))
            .map_err(|error| self.corrupt(column, &error))
    }

    pub(super) fn maybe_word<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>, StoreError> {
        match self.maybe_text(column)? {
            Some(_) => self.word(column).map(Some),
            None => Ok(None),
        }
    }
}

/// UTC microseconds.
pub(super) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// A release's number as the engine keeps it.
pub(super) fn numbered(number: ReleaseNumber) -> Result<i64, StoreError> {
    i64::try_from(number.0).map_err(|_| StoreError::Unknown { what: "release", key: number.to_string() })
}

/// How a release is named in [`StoreError::Unknown`].
pub(super) fn no_such_release(target: &TargetName, number: ReleaseNumber) -> StoreError {
    StoreError::Unknown { what: "release", key: format!("{number} of {target}") }
}

/// A record inside a record.
pub(super) fn json<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Engine { what, source: Box::new(error) })
}

/// The word of a variant without content.
pub(super) fn word<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    Ok(json(what, value)?.trim_matches('"').to_owned())
}
