//! Operations on hosts.

pub(crate) mod check_in;
pub(crate) mod recent_replies;
pub(crate) mod registration;
