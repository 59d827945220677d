//! The SQL statements of the store, and the conversion of their result rows.

pub(super) mod check_ins;
pub(super) mod commit;
mod effects;
pub(super) mod events;
mod joined;
pub(super) mod leases;
#[cfg(test)]
mod plans;
pub(super) mod records;
pub(super) mod reports;
mod writes;
