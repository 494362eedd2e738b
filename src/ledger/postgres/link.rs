//! The connection to a server, and the wait for its answers: each of them has a limit, so that a server that hangs
//! holds up the ledger's thread for a while and not for ever.

use super::address::Address;
use super::fault::Fault;
use super::settings::Settings;
use crate::ledger::error::{Kind, LedgerError};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Client, Row, Statement};

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];
/// One that is put together.
pub(super) type Value<'a> = Box<dyn ToSql + Sync + 'a>;

/// A connection that may be lost, and made again.
pub(super) struct Link {
    address: Address,
    settings: Settings,
    runtime: Runtime,
    session: Option<Session>,
}

/// A connection that stands, with the statements it has prepared.
pub(super) struct Session {
    pub client: Client,
    ended: JoinHandle<()>,
    statements: RefCell<HashMap<&'static str, Statement>>,
}

impl Link {
    pub fn open(address: Address, settings: Settings) -> Result<Link, LedgerError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| {
            LedgerError::new(address.place.as_str(), Kind::Unreachable, e.to_string())
        })?;
        let mut link = Link {
            address,
            settings,
            runtime,
            session: None,
        };
        link.connect()?;
        Ok(link)
    }

    fn place(&self) -> &str {
        &self.address.place
    }

    /// Other settings from now on.
    pub fn retune(&mut self, settings: Settings) -> Result<(), LedgerError> {
        self.settings = settings;
        let sql = self.settings.sql.clone();
        self.run(async |session| session.batch(&sql).await)
    }

    /// Ends the connection in good order.
    pub fn close(&mut self) {
        let Some(Session { client, ended, .. }) = self.session.take() else {
            return;
        };
        drop(client);
        let limit = self.settings.answer_limit;
        let ended = async { ended.await.map_err(|_| Fault::Lost) };
        if let Err(fault) = within(&self.runtime, limit, ended) {
            log::debug!("{}", fault.at(self.place()));
        }
    }

    /// Makes a new connection, in place of the one there is.
    pub fn connect(&mut self) -> Result<(), LedgerError> {
        self.session = None;
        let tls = self.address.trust.connector(self.place())?;
        let limit = self.settings.connect_limit;
        let connecting = async {
            let connected = self.address.config.connect(tls).await;
            let (client, connection) = connected.map_err(Fault::Connecting)?;
            let ended = self.runtime.spawn(async {
                if let Err(e) = connection.await {
                    log::debug!("ledger: a connection to PostgreSQL ended: {e}");
                }
            });
            let told = client.batch_execute(&self.settings.sql).await;
            told.map_err(Fault::Connecting)?;
            Ok((client, ended))
        };
        let (client, ended) =
            within(&self.runtime, limit, connecting).map_err(|fault| fault.at(self.place()))?;
        self.session = Some(Session {
            client,
            ended,
            statements: RefCell::default(),
        });
        Ok(())
    }

    /// Does something on the connection, within the limit. One that failed as such is given up.
    pub fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, LedgerError> {
        self.attempt(work).map_err(|fault| fault.at(self.place()))
    }

    /// As `run`, for one who looks into what went wrong.
    pub fn attempt<T>(
        &mut self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let session = self.session.as_ref().ok_or(Fault::Lost)?;
        let limit = self.settings.answer_limit;
        let done = within(&self.runtime, limit, work(session));
        match &done {
            Err(fault) if fault.ends_the_connection() => self.session = None,
            Err(_) => self.give_up(),
            Ok(_) => {}
        }
        done
    }

    /// Ends a transaction that failed; where there is none, the server minds nothing.
    fn give_up(&mut self) {
        let Some(session) = &self.session else { return };
        let limit = self.settings.answer_limit;
        let ended = within(&self.runtime, limit, session.batch("ROLLBACK"));
        if ended.is_err() {
            self.session = None;
        }
    }
}

/// Waits for something, and no longer than the limit.
fn within<T>(
    runtime: &Runtime,
    limit: Duration,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    runtime
        .block_on(async { tokio::time::timeout(limit, work).await })
        .unwrap_or(Err(Fault::Late(limit)))
}

/// What a column of a row holds, by its name or number.
pub(super) fn column<'a, I, T>(row: &'a Row, index: I) -> Result<T, Fault>
where
    I: RowIndex + std::fmt::Display,
    T: FromSql<'a>,
{
    row.try_get(index).map_err(Fault::Column)
}

impl Session {
    /// A statement, prepared once. What is to be sent without waiting for answers needs its statements before.
    pub async fn statement(&self, sql: &'static str) -> Result<Statement, Fault> {
        let known = self.statements.borrow().get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    pub async fn rows(&self, sql: &'static str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    pub async fn row(&self, sql: &'static str, values: Values<'_>) -> Result<Row, Fault> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query_one(&statement, values).await?)
    }

    pub async fn change(&self, sql: &'static str, values: Values<'_>) -> Result<u64, Fault> {
        let statement = self.statement(sql).await?;
        Ok(self.client.execute(&statement, values).await?)
    }

    pub async fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }
}
