//! What can be found in a store, apart from lists of records: functions over [`Store::query`](super::Store::query).

mod check_ins;
mod clusters;
mod events;
mod hosts;
mod leases;
mod records;
mod reports;
mod rows;
