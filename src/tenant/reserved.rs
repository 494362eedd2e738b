//! Units taken from a tenant's account that find their way back in every case.

use super::Tenant;
use crate::budget::{Exhausted, Reservation, Units};
use crate::clock::Timestamp;
use std::sync::Arc;

/// A reservation with the account it lies on. Dropped unsettled (a refusal after it was taken), it is void: nothing is charged.
#[derive(Debug)]
pub struct Reserved {
    tenant: Arc<Tenant>,
    reservation: Option<Reservation>,
    units: Units,
}

impl Tenant {
    /// Takes units from the account before they are spent.
    pub fn reserve(
        self: &Arc<Tenant>,
        units: Units,
        now: Timestamp,
    ) -> Result<Reserved, Exhausted> {
        let reservation = self.account().reserve(units, now)?;
        Ok(Reserved {
            tenant: self.clone(),
            units: reservation.units(),
            reservation: Some(reservation),
        })
    }
}

impl Reserved {
    pub fn units(&self) -> Units {
        self.units
    }

    /// Gives the reservation back and takes the charge instead.
    pub fn settle(mut self, charge: Units) {
        self.finish(charge);
    }

    fn finish(&mut self, charge: Units) {
        if let Some(reservation) = self.reservation.take() {
            self.tenant.account().settle(reservation, charge);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.finish(Units::ZERO);
    }
}
