//! Embeds the whole Kindling service in an axum application, next to the application's own routes: `cargo run --example
//! embed_inventory -- IMAGE.iso DIRECTORY`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use ignition::discovery::HttpUrl;
use kindling::http::images::{EmbeddedInputs, ImageServer};
use kindling::images::library::{Library, LibrarySettings};
use kindling::inventory::auth::Policy;
use kindling::inventory::background;
use kindling::inventory::catalogue::Catalogue;
use kindling::inventory::files::FileStore;
use kindling::inventory::store::SqlStore;
use kindling::inventory::{Inventory, Settings};
use tokio::net::TcpListener;

/// Returns an application that contains the service. `origin` is the URL at which hosts reach it.
pub(crate) async fn application(
    base: &str,
    directory: &Path,
    origin: &str,
) -> Result<Router, Box<dyn Error>> {
    let url = HttpUrl::parse("origin", origin)?;
    let base = Path::new(base).canonicalize()?;
    let images = serde_json::json!([{
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94.1",
        "url": format!("file://{}", base.display()),
    }]);
    let catalogue = Catalogue::parse(&images.to_string())?;
    let os_images = catalogue.os_images().to_vec();
    let library = Library::open(LibrarySettings::new(directory.join("images")), os_images.clone())?;
    let store = Arc::new(SqlStore::open_file(&directory.join("kindling.db")).await?);
    let files = FileStore::in_directory(&directory.join("files"))?;
    let settings = Settings::new(url.clone(), url.clone());
    // No authentication here: the embedding application must authenticate requests.
    let inventory = Inventory::new(store, files, catalogue, settings, Policy::Open);
    let images = ImageServer::new(os_images, library, Arc::new(EmbeddedInputs::new(inventory.clone())), url);
    // Marks hosts as disconnected that stop checking in, and deletes the files of deleted clusters.
    tokio::spawn(background::run(inventory.clone(), std::future::pending()));
    let service = kindling::http::app(&inventory, Some(&images));
    Ok(Router::new().route("/about", get(|| async { "an application" })).fallback_service(service))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, directory] = arguments.as_slice() else {
        return Err("usage: embed_inventory IMAGE.iso DIRECTORY".into());
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    println!("{origin}");
    let application = application(base, Path::new(directory), &origin).await?;
    Ok(kindling::http::serve(listener, application, std::future::pending()).await?)
}
