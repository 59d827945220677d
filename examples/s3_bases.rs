//! Downloads a base image from a bucket once, verifies it and stores it: `cargo run --example s3_bases --
//! s3://BUCKET/KEY DIRECTORY`.
//!
//! The usual variables configure credentials and endpoint: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
//! `S3_ENDPOINT_URL`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use kindling::images::library::{Library, LibrarySettings, OpenBaseImage};
use kindling::inventory::catalogue::{CpuArchitecture, ImageType, OsImage};

/// Returns the base image at a URL. Downloads it to `directory` unless it is already there.
pub(crate) async fn base(url: &str, directory: &Path) -> Result<Arc<OpenBaseImage>, Box<dyn Error>> {
    let image = OsImage {
        openshift_version: "4.18".to_owned(),
        cpu_architecture: CpuArchitecture::X86_64,
        url: url.to_owned(),
        version: "418.94.1".to_owned(),
        image_type: ImageType::Full,
        sha256: None,
    };
    let library = Library::open(LibrarySettings::new(directory), [image.clone()])?;
    Ok(library.base(&image).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, directory] = arguments.as_slice() else {
        return Err("usage: s3_bases s3://BUCKET/KEY DIRECTORY".into());
    };
    let base = base(url, Path::new(directory)).await?;
    let digest = base.digest();
    println!("{}: {digest}", base.image().volume().id());
    Ok(())
}
