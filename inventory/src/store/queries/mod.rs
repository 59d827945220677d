//! Queries other than lists of records, as methods of `dyn Store` over [`Store::query`](super::Store::query).

mod check_ins;
mod clusters;
mod events;
mod hosts;
mod leases;
mod records;
mod reports;
mod rows;
