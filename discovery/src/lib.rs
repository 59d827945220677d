//! Discovery images: from an infra-env's inputs to its Ignition config, network files, kernel arguments and image
//! plans.
//!
//! A machine that boots a discovery image runs an agent, which registers the machine as a host of an infra-env. This
//! crate combines [`ignition`], which writes configs, and [`isogen`], which edits images. It uses no sockets, no
//! database and no async runtime.
//!
//! ```text
//! manifests, options        ->  Draft       texts and their locations, unchecked
//! Draft, InputsBuilder      ->  Inputs      checked values, or all findings with their locations
//! ImageSet::plan(form)      ->  Plan        the layout of an image: kilobytes, made in milliseconds
//! ```
//!
//! * [`InputsBuilder`] takes typed values, [`Draft`] takes texts, and [`manifests`] reads Kubernetes manifests into a
//!   draft. Each path ends in a check, which returns [`Inputs`] and warnings, or a [`DiscoveryReport`] with errors.
//! * [`ImageSet`] creates the images from the inputs and one base image: full ISO, minimal ISO, and the initrd for
//!   hosts that boot over the network.
//! * [`PlanFile`] describes an image in a few KiB, so that another machine can create the same image.
//!
//! `Inputs` and everything derived from them contain secrets. Their `Debug` output leaves the secrets out.
//!
//! # Examples
//!
//! ```no_run
//! use discovery::{Form, ImageSet, Inputs};
//! use ignition::discovery::{HttpUrl, ImageReference, InfraEnvId, InfraEnvSettings, InventoryService, PullSecret};
//! use ignition::network::KeyfileCache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service = InventoryService::new(
//!     HttpUrl::parse("service", "https://assisted.example.com")?,
//!     ImageReference::parse("agent", "quay.io/example/agent:v1")?,
//! );
//! let id = InfraEnvId::parse("0f2a5d3c-1111-4222-8333-444455556666")?;
//! let infra_env = InfraEnvSettings::new(id, PullSecret::parse(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#)?);
//! let cache = KeyfileCache::default();
//! let inputs = Inputs::builder(service, infra_env, "4.18".parse()?).check(&cache)?;
//! for warning in inputs.warnings {
//!     eprintln!("{warning}");
//! }
//! let base = isogen::BaseImage::open("rhcos-live.iso")?;
//! let images = ImageSet::new(base.into(), inputs.value, &cache)?;
//! images.plan(&Form::Full)?.write_file("discovery.iso")?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

/// Compiles the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod check;
mod checked;
mod draft;
mod error;
mod finding;
mod form;
mod host;
#[cfg(feature = "tokio")]
mod image;
#[cfg(feature = "http")]
mod image_body;
mod image_set;
mod inputs;
pub mod manifests;
mod packed;
mod plan_file;
mod rendered;
#[cfg(feature = "http")]
pub mod representation;
mod revision;
mod version;

pub use builder::InputsBuilder;
pub use checked::Checked;
pub use draft::{Draft, ServiceContext, Text};
pub use error::DiscoveryError;
pub use finding::{DiscoveryFinding, DiscoveryReport, FindingKind, Located, SourceLocation};
pub use form::Form;
pub use host::{Host, HostOrigin};
#[cfg(feature = "tokio")]
pub use image::{Image, ImageReader};
#[cfg(feature = "http")]
pub use image_body::ImageBody;
pub use image_set::ImageSet;
pub use inputs::{Inputs, newest_spec};
pub use packed::{BaseContext, PackedConfig};
pub use plan_file::{ImageIdentity, PlanFile, PlanFileError};
pub use rendered::RenderedConfig;
pub use revision::{BaseImageEntry, ImageRevision, InvalidRevision};
pub use version::{InvalidVersion, OpenshiftVersion};
