//! Waiting in line for a slot. The client may leave and anyone may ask to stop, as later; where the pool answers early,
//! heartbeats go out meanwhile.

use super::Gateway;
use super::beat;
use super::context::Ctx;
use super::fate::Fate;
use super::pace::Pace;
use pingora_proxy::Session;

/// Starts the request once its turn has come. In every other case its place is given up.
pub async fn start(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Result<(), Fate> {
    let Some(mut place) = ctx.place.take() else {
        return Ok(());
    };
    let has_to_wait = !place.is_granted();
    let granted = match place.take_now() {
        Some(granted) => granted,
        None => beat::through(place.granted(), gateway, session, ctx, pace)
            .await?
            .map_err(|timed_out| Fate::queue_timeout(timed_out.retry_after))?,
    };
    if let Some(exchange) = &mut ctx.exchange {
        exchange.start(granted);
        if has_to_wait {
            // the entry says that it waits
            exchange.checkpoint();
        }
    }
    pace.request_starts();
    Ok(())
}
