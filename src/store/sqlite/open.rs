//! Opening the database file: making it, bringing its schema forward, and refusing what is not
//! ours, damaged or newer.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use super::db::{Db, failed};
use super::files::{Files, file_error};
use crate::store::StoreError;
use crate::store::schema;

/// How long a statement waits for another process's lock: only a reader's recovery of the log can
/// hold one, and that takes milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection. A write holds the only one for one disk flush.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How many questions are answered at once.
const READERS: u32 = 4;
/// How often a reader looks which files there are: an owner that stops or starts in between changes
/// the answer, and does so once.
const LOOKS: u32 = 3;
/// What the write-ahead log is cut back to after a checkpoint, in bytes.
const LOG_LIMIT_BYTES: &str = "4194304";

fn options(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(database)
        .create_if_missing(false)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        // Sorting must work while the disk is full.
        .pragma("temp_store", "MEMORY")
        .disable_statement_logging()
}

fn writing(database: &Path) -> SqliteConnectOptions {
    options(database)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", LOG_LIMIT_BYTES)
}

fn reading(database: &Path) -> SqliteConnectOptions {
    options(database).read_only(true)
}

/// The options of a reader that leaves nothing behind, whether a daemon runs or not.
///
/// - A log and its index are there: a daemon runs or was killed. The index is opened for reading
///   too (`readonly_shm`); without a living owner the engine builds its own in memory.
/// - There is no log: no daemon runs, and everything is in the database file (`immutable`). One
///   that starts right now writes to a log first, not to that file.
/// - A log without its index, as in a copy of two of the three files: the engine has to make one.
///
/// Source: sqlite.org, "Write-Ahead Logging", section 8, and "Uniform Resource Identifiers".
fn looking(database: &Path) -> SqliteConnectOptions {
    if !Files::beside(database, "-wal").exists() {
        return reading(database).immutable(true);
    }
    if !Files::beside(database, "-shm").exists() {
        return reading(database);
    }
    reading(Path::new(&format!("file:{}?readonly_shm=1", escaped(database))))
}

/// A path as it stands in a `file:` address.
fn escaped(path: &Path) -> String {
    let mut address = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address
}

fn pooled(path: String, (options, connections): (SqliteConnectOptions, u32)) -> Db {
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options);
    Db { pool, path }
}

/// Opens the database of a state directory that this process has locked: first the writer, then
/// the readers. Makes it when there is none, and brings its schema forward.
pub(super) async fn for_writing(files: &Files) -> Result<(Db, Db), StoreError> {
    let database = files.database();
    let path = database.display().to_string();
    if !exists(&database)? {
        refuse_orphaned_log(&database)?;
        create(files).await?;
    }
    inspect(&path, reading(&database), Migrated::Later).await?;
    let writer = pooled(path.clone(), (writing(&database), 1));
    migrate_with(&writer).await?;
    let readers = pooled(path, (reading(&database), READERS));
    Ok((writer, readers))
}

/// Opens a database for reading without owning its directory, and without writing to it.
pub(super) async fn for_reading(files: &Files) -> Result<Db, StoreError> {
    let database = files.database();
    let path = database.display().to_string();
    if !exists(&database)? {
        let nothing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(file_error("find the store", &database, nothing));
    }
    let mut looks = 1;
    loop {
        let options = looking(&database);
        match inspect(&path, options.clone(), Migrated::Already).await {
            Ok(()) => return Ok(pooled(path, (options, 1))),
            Err(StoreError::Engine { .. }) if looks < LOOKS => looks += 1,
            Err(error) => return Err(error),
        }
    }
}

fn exists(database: &Path) -> Result<bool, StoreError> {
    database.try_exists().map_err(|source| file_error("look for the store", database, source))
}

/// A log without its database would be played into a new one.
fn refuse_orphaned_log(database: &Path) -> Result<(), StoreError> {
    let log = Files::beside(database, "-wal");
    match std::fs::metadata(&log) {
        Ok(found) if found.len() > 0 => Err(StoreError::Damaged {
            path: database.display().to_string(),
            detail: format!("it is gone, while its log `{}` is there", log.display()),
        }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(file_error("look for", &log, error)),
    }
}

/// Makes a database beside its place and renames it: one that is there is always whole, so an
/// empty file is one that lost its content.
async fn create(files: &Files) -> Result<(), StoreError> {
    let unfinished = files.make_unfinished_database()?;
    let path = unfinished.display().to_string();
    let fail = |error| failed(&path, "make a new database", error);
    let options = options(&unfinished).synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await.map_err(fail)?;
    migrate(&path, &mut connection).await?;
    connection.close().await.map_err(fail)?;
    files.finish_database()
}

async fn migrate_with(writer: &Db) -> Result<(), StoreError> {
    let mut connection =
        writer.pool.acquire().await.map_err(|error| failed(&writer.path, "open the database", error))?;
    let migrated = migrate(&writer.path, &mut connection).await;
    if migrated.is_err() {
        // Whatever is half done ends with its connection.
        connection.close_on_drop();
    }
    migrated
}

/// Runs the migrations that are missing, each whole or not at all.
async fn migrate(path: &str, connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let fail = |error| failed(path, "bring the schema forward", error);
    let found = pragma(path, &mut *connection, "PRAGMA user_version").await?;
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for migration in schema::MIGRATIONS.iter().skip(done) {
        for statements in ["BEGIN IMMEDIATE", *migration, "COMMIT"] {
            sqlx::raw_sql(statements).execute(&mut *connection).await.map_err(fail)?;
        }
    }
    Ok(())
}

/// Whether an older schema is brought forward after the look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Migrated {
    Later,
    Already,
}

/// Looks at a database without changing it: is it ours, whole, and of a schema that we know?
async fn inspect(path: &str, options: SqliteConnectOptions, migrated: Migrated) -> Result<(), StoreError> {
    let fail = |error| failed(path, "open the database", error);
    let mut connection = options.connect().await.map_err(fail)?;
    let looked = look(path, &mut connection, migrated).await;
    connection.close().await.map_err(fail)?;
    looked
}

async fn look(path: &str, connection: &mut SqliteConnection, migrated: Migrated) -> Result<(), StoreError> {
    let damaged = |detail: String| StoreError::Damaged { path: path.to_owned(), detail };
    let owner = pragma(path, &mut *connection, "PRAGMA application_id").await?;
    let found = pragma(path, &mut *connection, "PRAGMA user_version").await?;
    if owner != i64::from(schema::APPLICATION_ID) || found < 1 {
        return Err(damaged("it is empty, or another program's".to_owned()));
    }
    let known = schema::newest();
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    let path_of = || path.to_owned();
    if found > known {
        let path = path_of();
        return Err(StoreError::NewerSchema { path, found, known });
    }
    if found < known && migrated == Migrated::Already {
        let path = path_of();
        return Err(StoreError::OlderSchema { path, found, known });
    }
    let answer: String = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_one(connection)
        .await
        .map_err(|error| failed(path, "check the database", error))?;
    if answer == "ok" { Ok(()) } else { Err(damaged(answer.trim().replace('\n', "; "))) }
}

async fn pragma(path: &str, connection: &mut SqliteConnection, question: &'static str) -> Result<i64, StoreError> {
    sqlx::query_scalar(question)
        .fetch_one(connection)
        .await
        .map_err(|error| failed(path, "read the database's header", error))
}
