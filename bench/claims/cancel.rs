//! A cancel call: how long until the slot can be had again, as the gateway's own gauge shows it.
//!
//! The gauge is asked for again and again; each asking is part of the time, so the figure is an upper bound.

use crate::claim::{Claim, Reading, ms};
use crate::ground::{Ground, scripted_chat};
use crate::median::median;
use crate::support::ask::Ask;
use crate::support::client::Stream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Cancels one after another in one measurement.
const CANCELS: usize = 10;

const CANCEL: Claim = Claim::at_most("cancel call → slot free", "ms", 5.0);

pub fn measure(ground: &Ground) -> Vec<Reading> {
    let time = median((0..CANCELS).map(|_| one_cancel(ground)));
    vec![CANCEL.reads(time, &[])]
}

fn one_cancel(ground: &Ground) -> f64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let id = format!("cancel-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut stream = ground.gateway.send(&scripted_chat("paced").id(&id));
    (0..3).for_each(|n| {
        assert!(
            stream.content().is_some(),
            "the stream ended at token {n}: {stream:?}"
        )
    });
    let mut caller = Stream::connect(ground.gateway.addr());
    let asked = Instant::now();
    caller.write(&Ask::post(format!("/generations/{id}/cancel")).bytes());
    assert_eq!(caller.status(), 202, "{caller:?}");
    while ground
        .gateway
        .metric("streamgate_slots", &[("pool", "scripted")])
        > 0.0
    {
        assert!(
            asked.elapsed().as_secs() < 10,
            "the slot of {id} never came free"
        );
    }
    ms(asked.elapsed())
}
