//! The responses of the routes outside of the API match the API document.

use crate::schemathesis::check_responses;
use crate::{ImageTestServer, run};

/// Returns values of parameters: an existing infra-env with a host, and existing files for each route.
fn known_values(infra_env: &str) -> String {
    let mut text = format!(
        "[parameters]\nid = {infra_env:?}\nwho = {infra_env:?}\nmachine = \"52:54:00:00:00:01\"\nversion = \"4.14\"\n\
         arch = \"x86_64\"\narchitecture = \"x86_64\"\ntype = \"minimal-iso\"\n"
    );
    for (operation, file) in [
        ("DownloadImageById", "minimal.iso"),
        ("DownloadBootArtifact", "kernel"),
        ("DownloadInfraEnvImageFile", "script.ipxe"),
        ("DownloadHostImageFile", "initrd.sha256"),
    ] {
        text.push_str(&format!(
            "[[operations]]\ninclude-operation-id = {operation:?}\nparameters = {{ file = {file:?} }}\n"
        ));
    }
    text
}

#[test]
fn responses_outside_of_the_api_match_the_document() {
    run(async {
        let server = ImageTestServer::start_without_tokens().await;
        let (_, id) = server.create_infra_env().await;
        // Use valid values. Otherwise the requests would not reach the routes.
        for path in [
            format!("/byid/{id}/4.14/x86_64/minimal.iso"),
            "/boot-artifacts/kernel?version=4.14".to_owned(),
            format!("/i/{id}/script.ipxe"),
            format!("/i/{id}/52:54:00:00:00:01/initrd.sha256"),
        ] {
            server.get_bytes(&path).await;
        }
        let document = format!("{}/openapi.json", server.base);
        let api = ["--exclude-path-regex", "^/v2/"];
        check_responses(&document, &server.base, &known_values(&id), &api).await;
    });
}
