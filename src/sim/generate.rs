//! Answers one request: waits for a slot, makes its tokens in time, and breaks off where a fault says so.

use super::engine::{Engine, Run};
use super::faults::CutKind;
use super::script::{BROKEN, Facts, Script};
use super::template::{Step, Template};
use super::wire::{JSON, Wire};
use std::io;

/// What is to become of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer is whole.
    Complete,
    /// To be reset, the answer cut.
    Reset,
    /// To be closed, the answer cut.
    Fin,
}

/// Answers with an event stream. Its head goes out at once, before there is a slot, as vLLM's does; only where a fault
/// delays the head does the request hold its slot meanwhile.
pub async fn stream(engine: &Engine, facts: &Facts<'_>, wire: &mut Wire<'_>) -> io::Result<End> {
    let delayed = facts.faults.header_delay.is_some();
    if !delayed {
        wire.open_stream().await?;
    }
    let run = admitted(engine, facts).await;
    if delayed {
        wire.open_stream().await?;
    }
    let stream = Stream {
        run,
        facts,
        script: &facts.script(),
        pen: Pen::new(wire, facts),
    };
    stream.play().await
}

/// Answers with one document, after the time its tokens take. Of a cut only its kind matters.
pub async fn document(engine: &Engine, facts: &Facts<'_>, wire: &mut Wire<'_>) -> io::Result<End> {
    let mut run = admitted(engine, facts).await;
    run.prefill().await;
    for made in 0..facts.job.output_tokens {
        run.stall(facts.faults.stall_after(made)).await;
        run.token().await;
    }
    run.stall(facts.faults.stall_after(facts.job.output_tokens))
        .await;
    let body = facts.document();
    let Some(cut) = facts.faults.cut else {
        run.succeed();
        wire.document(200, JSON, &body).await?;
        return Ok(End::Complete);
    };
    drop(run);
    match cut.kind {
        CutKind::Error => {
            let error = facts.family.error(500, BROKEN, facts.id);
            wire.document(500, JSON, error.as_bytes()).await?;
            Ok(End::Complete)
        }
        CutKind::Fin => {
            wire.half_document(&body).await?;
            Ok(End::Fin)
        }
        CutKind::Reset | CutKind::Torn => {
            wire.half_document(&body).await?;
            Ok(End::Reset)
        }
    }
}

async fn admitted<'a>(engine: &'a Engine, facts: &Facts<'_>) -> Run<'a> {
    let slot = engine.admit(facts.model).await;
    if let Some(delay) = facts.faults.header_delay {
        tokio::time::sleep(delay).await;
    }
    engine.start(slot, facts.job.prompt_tokens)
}

/// An event stream under way.
struct Stream<'a, 'w> {
    run: Run<'a>,
    facts: &'a Facts<'a>,
    script: &'a Script,
    pen: Pen<'a, 'w>,
}

impl Stream<'_, '_> {
    async fn play(mut self) -> io::Result<End> {
        self.run.prefill().await;
        for event in &self.script.preamble {
            self.pen.write(event).await?;
        }
        let tokens = self.facts.job.output_tokens;
        for made in 0..tokens {
            if let Some(kind) = self.fault_after(made).await {
                return self.break_off(kind).await;
            }
            self.run.token().await;
            self.pen.write_token(&self.script.token).await?;
        }
        match self.fault_after(tokens).await {
            Some(kind) => self.break_off(kind).await,
            None => self.finish().await,
        }
    }

    /// Stops where a fault says so, and says whether the stream breaks off here.
    async fn fault_after(&mut self, events: u32) -> Option<CutKind> {
        let faults = self.facts.faults;
        self.run.stall(faults.stall_after(events)).await;
        faults.cut_after(events)
    }

    /// The engine is done once the last token is made: the slot is free before the client can read the end.
    async fn finish(mut self) -> io::Result<End> {
        match self.facts.faults.no_done {
            true => drop(self.run),
            false => self.run.succeed(),
        }
        for event in &self.script.ending {
            self.pen.write(event).await?;
        }
        self.pen.wire.end_stream().await?;
        Ok(End::Complete)
    }

    async fn break_off(mut self, kind: CutKind) -> io::Result<End> {
        match kind {
            CutKind::Reset => Ok(End::Reset),
            CutKind::Fin => Ok(End::Fin),
            CutKind::Torn => {
                self.tear().await?;
                Ok(End::Reset)
            }
            CutKind::Error => {
                drop(self.run);
                self.pen.write(&self.script.error).await?;
                self.pen.wire.end_stream().await?;
                Ok(End::Complete)
            }
        }
    }

    /// Writes half of the event that comes next.
    async fn tear(&mut self) -> io::Result<()> {
        if self.pen.step.made < self.facts.job.output_tokens {
            self.run.token().await;
            self.pen.render_token(&self.script.token);
        } else if let Some(next) = self.script.ending.first() {
            self.pen.render(next);
        }
        self.pen.write_half().await
    }
}

/// Renders events and writes them, one at a time.
struct Pen<'a, 'w> {
    wire: &'a mut Wire<'w>,
    step: Step,
    /// The event being written; its memory serves the next one.
    event: Vec<u8>,
    event_bytes: usize,
}

impl<'a, 'w> Pen<'a, 'w> {
    fn new(wire: &'a mut Wire<'w>, facts: &Facts<'_>) -> Pen<'a, 'w> {
        Pen {
            wire,
            step: Step {
                prompt: facts.job.prompt_tokens,
                ..Step::default()
            },
            event: Vec::new(),
            event_bytes: facts.faults.event_bytes.unwrap_or(0),
        }
    }

    async fn write(&mut self, event: &Template) -> io::Result<()> {
        self.render(event);
        self.wire.event(&self.event).await
    }

    async fn write_token(&mut self, event: &Template) -> io::Result<()> {
        self.render_token(event);
        self.wire.event(&self.event).await
    }

    async fn write_half(&mut self) -> io::Result<()> {
        let (half, _) = self.event.split_at(self.event.len() / 2);
        self.wire.event(half).await
    }

    fn render(&mut self, event: &Template) {
        self.event.clear();
        event.render(&self.step, &mut self.event);
        self.step.sequence += 1;
    }

    /// Renders the next token's event, its text padded until the event is as long as asked for.
    fn render_token(&mut self, event: &Template) {
        self.step.made += 1;
        self.event.clear();
        event.render(&self.step, &mut self.event);
        self.step.padding = self.event_bytes.saturating_sub(self.event.len());
        if self.step.padding > 0 {
            self.event.clear();
            event.render(&self.step, &mut self.event);
            self.step.padding = 0;
        }
        self.step.sequence += 1;
    }
}
