//! The base images on this machine.

pub mod library;
