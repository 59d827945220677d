//! The library of base images on this machine.

pub mod library;
