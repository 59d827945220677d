//! A provisioning service that uses the libraries without the program: images from typed values and manifests, an
//! inventory in process, and a client.

pub mod image_server;
pub mod provisioning;
pub mod site;
