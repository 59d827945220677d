//! Creates a discovery ISO from a directory of manifests: `cargo run --example offline_iso -- BASE.iso MANIFESTS
//! SERVICE_URL OUTPUT.iso`.

use std::error::Error;
use std::sync::Arc;

use discovery::manifests::Manifests;
use discovery::{Draft, Form, ImageSet, ServiceContext};
use ignition::discovery::{HttpUrl, ImageReference, InventoryService};
use ignition::network::KeyfileCache;
use isogen::BaseImage;

/// Creates the image and returns the findings about the manifests.
pub(crate) fn make(
    base: &str,
    manifests: &str,
    service: &str,
    output: &str,
) -> Result<String, Box<dyn Error>> {
    let cache = KeyfileCache::new(64 << 20);
    let (draft, mut findings) = Manifests::read(manifests)?.draft(None, Draft::default())?;
    if findings.is_fatal() {
        return Err(findings.into());
    }
    let agent =
        ImageReference::parse("agent", "quay.io/edge-infrastructure/assisted-installer-agent:latest")?;
    let service = InventoryService::new(HttpUrl::parse("service", service)?, agent);
    let inputs = draft.inputs(&ServiceContext { service, version: None }, &cache)?;
    findings.append(inputs.warnings);
    let images = ImageSet::new(Arc::new(BaseImage::open(base)?), inputs.value, &cache)?;
    images.plan(&Form::Full)?.write_file(output)?;
    Ok(findings.to_string())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, manifests, service, output] = arguments.as_slice() else {
        return Err("usage: offline_iso BASE.iso MANIFESTS SERVICE_URL OUTPUT.iso".into());
    };
    let warnings = make(base, manifests, service, output)?;
    if !warnings.is_empty() {
        eprintln!("{warnings}");
    }
    Ok(())
}
