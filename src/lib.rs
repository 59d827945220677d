//! Kindling makes per-cluster boot images of CoreOS live images, on the fly.
//!
//! The crate is the product around two others: [`isogen`], which describes changed images as byte plans over an
//! untouched base, and [`ignition`], which makes the configs that go into them.

pub mod cli;
pub mod customize;
pub mod discovery;
pub mod doctor;
pub mod http;
pub mod images;
pub mod inventory;
mod recent;
