//! Controllers that drive the inventory from custom resources of the Assisted Installer.

pub mod classification;
pub mod crds;
pub mod label_value;
