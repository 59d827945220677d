//! Many downloads at a time.
