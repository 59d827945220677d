//! Requests for images during the download of their base image.

use std::sync::Arc;

use isogen::Digest;
use serde_json::json;
use tempfile::TempDir;

use super::image_file_server::{ImageFileServer, ImageReply, ReplyGate};
use super::{ImageTestServer, InputsGate, Policy, base_image_with_nmstatectl, run};

/// Starts a server with two request slots. Its base image is being downloaded until the gate opens.
async fn start_downloading(gate: &ReplyGate, inputs: &Arc<InputsGate>) -> (ImageTestServer, ImageFileServer) {
    let bytes = base_image_with_nmstatectl(b"a program");
    let sha256 = Digest::from_data(&bytes).to_string();
    let gate = gate.clone();
    let mirror = ImageFileServer::new(move |request, _| {
        ImageReply::from_file(request, &bytes, "\"one\"").wait_after(bytes.len() - 1, &gate)
    })
    .await;
    let more = json!({"url": mirror.url("base.iso"), "sha256": sha256, "openshift_version": "4.18"});
    let (directory, inputs) = (TempDir::new().unwrap(), Some(Arc::clone(inputs)));
    (ImageTestServer::start_in_directory(directory, (Policy::Open, None), more, inputs).await, mirror)
}

#[test]
fn waiting_for_a_download_does_not_delay_other_requests() {
    /// More than the number of request slots and of concurrent disk reads.
    const WAITING: usize = 40;
    run(async {
        let (gate, inputs) = (ReplyGate::new(), InputsGate::with_permits(100));
        let (server, _mirror) = start_downloading(&gate, &inputs).await;
        // The early-boot archive of this image needs `nmstatectl`.
        let (_, id) = server.create_infra_env_with_version("4.18").await;
        let url = |file: &str| format!("{}/i/{id}/{file}", server.base);
        let range = |file: &str| server.client.get(url(file)).header("range", "bytes=-100").send();
        let waiting: Vec<_> = (0..WAITING)
            .flat_map(|_| [tokio::spawn(range("full.iso")), tokio::spawn(range("minimal.iso"))])
            .collect();
        // While these requests wait, the image server responds to other requests.
        let mut others = 0;
        while inputs.asked() - others < WAITING * 2 {
            assert_eq!(server.get(&format!("/i/{id}/boot-trace")).await.status(), 200);
            others += 1;
        }
        assert!(waiting.iter().all(|request| !request.is_finished()), "a request did not wait");
        gate.open();
        for answer in waiting {
            assert_eq!(answer.await.unwrap().unwrap().bytes().await.unwrap().len(), 100);
        }
    });
}
