//! Serves one image from a plain hyper server, with range requests, conditional requests and resumable downloads:
//! `cargo run --example serve_from_hyper -- IMAGE.iso CONFIG.ign`.
//!
//! The served image contains the config, but is never written to a file.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use chrono::Utc;
use discovery::representation::Representation;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use isogen::{Archive, BaseImage, Edits, Encoding};
use tokio::net::TcpListener;

/// Returns the image with the embedded config, ready to be served.
pub(crate) fn content(base: &str, config: Vec<u8>) -> Result<Representation, Box<dyn Error>> {
    let mut archive = Archive::new();
    archive.insert("config.ign", config);
    let plan = BaseImage::open(base)?.plan(&Edits::new().archive(archive.pack(Encoding::Gzip)?))?;
    let etag = format!("\"{}\"", plan.identity()?);
    let name = Some("discovery.iso".to_owned());
    Ok(Representation::new(Arc::new(plan), etag, Utc::now(), "application/x-iso9660-image", name)?)
}

/// Accepts connections until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, content: Representation) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let content = content.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (method, headers, version) = (request.method(), request.headers(), request.version());
            std::future::ready(Ok::<_, Infallible>(content.respond(method, headers, version)))
        });
        tokio::spawn(
            async move { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await },
        );
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, config] = arguments.as_slice() else {
        return Err("usage: serve_from_hyper IMAGE.iso CONFIG.ign".into());
    };
    let content = content(base, std::fs::read(config)?)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    Ok(serve(listener, content).await?)
}
