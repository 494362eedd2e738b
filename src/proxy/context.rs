//! What is known of one HTTP exchange, from its head to its access line.

use super::hub::{Hub, Rules};
use super::relay::Relay;
use crate::access_log::Wire;
use crate::api::Call;
use crate::backend::{Member, NoPick};
use crate::exchange::{Ending, Exchange, Place};
use crate::ops::InFlight;
use crate::record::RequestId;
use crate::tenant::{Tenant, TenantName};
use std::sync::Arc;

pub struct Ctx {
    pub hub: Arc<Hub>,
    /// The rules this request is handled by, whatever a reload brings meanwhile.
    pub rules: Arc<Rules>,
    /// Names the answer; for an admitted request also its record.
    pub request_id: RequestId,
    pub tenant: Option<Arc<Tenant>>,
    pub call: Option<Call>,
    /// The code of a refusal or failure that was answered.
    pub code: Option<&'static str>,
    /// The owner, once the request is admitted.
    pub exchange: Option<Exchange>,
    /// Its place in line, until its turn has come.
    pub place: Option<Place>,
    pub relay: Option<Box<Relay>>,
    /// The backend that `upstream_peer` chose last, or why it chose none.
    pub member: Option<Arc<Member>>,
    pub no_pick: Option<NoPick>,
    pub ending: Option<Ending>,
    wire: Wire,
    /// Dropped with the context: after the last byte of the answer was written.
    _in_flight: InFlight,
}

impl Ctx {
    pub fn new(hub: Arc<Hub>) -> Ctx {
        Ctx {
            rules: hub.rules(),
            request_id: RequestId::generate(),
            tenant: None,
            call: None,
            code: None,
            exchange: None,
            place: None,
            relay: None,
            member: None,
            no_pick: None,
            ending: None,
            wire: Wire::default(),
            _in_flight: hub.drain.enter(),
            hub,
        }
    }

    pub fn tenant_name(&self) -> Option<&str> {
        self.tenant
            .as_ref()
            .map(|t| t.name())
            .map(TenantName::as_str)
    }

    /// The access line's facts, here or with the owner of the request.
    pub fn wire(&mut self) -> &mut Wire {
        match &mut self.exchange {
            Some(exchange) => &mut exchange.wire,
            None => &mut self.wire,
        }
    }

    /// The status the client was answered with.
    pub fn answered(&mut self, status: u16) {
        self.wire().status = status;
    }

    /// Hands the facts over to the owner.
    pub fn take_wire(&mut self) -> Wire {
        std::mem::take(&mut self.wire)
    }
}
