//! An example of a provisioning service that uses the libraries without the `kindling` program: images from typed
//! values and from manifests, an inventory in its own process, and a client.

pub mod image_server;
pub mod provisioning;
pub mod site;
