//! What is answered to which request.

use super::engine::Engine;
use super::faults::Faults;
use super::generate::{self, End};
use super::http::{Head, Request};
use super::job::{Api, Job};
use super::openai;
use super::script::{Facts, Family};
use super::wire::{JSON, Manner, TEXT, Wire};
use crate::clock;
use std::io;
use tokio::net::TcpStream;
use uuid::Uuid;

/// Answers a request; an error where a write failed.
pub async fn answer(stream: &TcpStream, engine: &Engine, request: &Request) -> io::Result<End> {
    let Request { head, body } = request;
    let id = Uuid::now_v7().simple().to_string();
    let faults = Faults::parse(&head.faults);
    let split = faults.as_ref().ok().and_then(|faults| faults.split);
    let mut wire = Wire::new(stream, manner(&id, head, split));
    let call = Call {
        family: Family::of_path(&head.path),
        engine,
        id: &id,
    };
    match (head.method.as_str(), Api::of_path(&head.path), faults) {
        ("POST", Some(api), Ok(faults)) => call.post(api, body, &faults, &mut wire).await,
        ("POST", Some(_), Err(message)) => call.refuse(&mut wire, 400, &message).await,
        ("GET", None, _) => call.get(&head.path, &mut wire).await,
        _ => call.not_found(&mut wire).await,
    }
}

/// Answers what could not be read as a request.
pub async fn refuse(stream: &TcpStream, status: u16, message: &str) -> io::Result<()> {
    let id = Uuid::now_v7().simple().to_string();
    let manner = Manner {
        request_id: &id,
        http11: true,
        keep_alive: false,
        split: None,
    };
    let body = openai::error(status, message);
    Wire::new(stream, manner)
        .document(status, JSON, body.as_bytes())
        .await
}

fn manner<'a>(id: &'a str, head: &Head, split: Option<usize>) -> Manner<'a> {
    Manner {
        request_id: id,
        http11: head.http11,
        keep_alive: head.keep_alive,
        split,
    }
}

/// One request on its way to an answer.
struct Call<'a> {
    family: Family,
    engine: &'a Engine,
    id: &'a str,
}

impl Call<'_> {
    async fn post(
        &self,
        api: Api,
        body: &[u8],
        faults: &Faults,
        wire: &mut Wire<'_>,
    ) -> io::Result<End> {
        if let Some(status) = faults.status {
            delay(faults).await;
            let message = "the simulated engine answers so, as X-Sim asked";
            return self.refuse(wire, status, message).await;
        }
        let job = match Job::read(api, body) {
            Ok(job) => job,
            Err(message) => return self.refuse(wire, 400, &message).await,
        };
        let first = self.engine.first_model();
        let facts = Facts {
            job: &job,
            family: self.family,
            faults,
            model: job.model.as_deref().unwrap_or(first),
            id: self.id,
            created: clock::now().unix_seconds(),
        };
        match (api, job.stream) {
            (Api::CountTokens, _) => {
                delay(faults).await;
                self.write(wire, JSON, &facts.document()).await
            }
            (_, true) => generate::stream(self.engine, &facts, wire).await,
            (_, false) => generate::document(self.engine, &facts, wire).await,
        }
    }

    async fn get(&self, path: &str, wire: &mut Wire<'_>) -> io::Result<End> {
        match path {
            "/health" => self.write(wire, TEXT, b"").await,
            "/metrics" => {
                let text = self.engine.metrics();
                self.write(wire, TEXT, text.as_bytes()).await
            }
            "/v1/models" => {
                let list = openai::models_document(self.engine.models());
                self.write(wire, JSON, list.as_bytes()).await
            }
            _ => self.not_found(wire).await,
        }
    }

    async fn not_found(&self, wire: &mut Wire<'_>) -> io::Result<End> {
        self.refuse(wire, 404, "there is nothing at this method and path")
            .await
    }

    async fn refuse(&self, wire: &mut Wire<'_>, status: u16, message: &str) -> io::Result<End> {
        let body = self.family.error(status, message, self.id);
        wire.document(status, JSON, body.as_bytes()).await?;
        Ok(End::Complete)
    }

    async fn write(&self, wire: &mut Wire<'_>, kind: &str, body: &[u8]) -> io::Result<End> {
        wire.document(200, kind, body).await?;
        Ok(End::Complete)
    }
}

async fn delay(faults: &Faults) {
    if let Some(delay) = faults.header_delay {
        tokio::time::sleep(delay).await;
    }
}
