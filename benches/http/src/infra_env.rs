//! Creates infra-envs through the API of Kindling.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::client::{Connection, Target, write_get, write_post};
use crate::exchange::ExpectedResponse;
use crate::interrupt;

/// Path of the API resource.
pub(crate) const API: &str = "/api/assisted-install/v2/infra-envs";
/// Maximum time for the digest of an image, which the server calculates in the background.
const DIGEST: std::time::Duration = std::time::Duration::from_secs(300);

#[derive(Debug, Clone, Copy)]
pub(crate) struct NewInfraEnv<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Static networks of the hosts, in the format of the API.
    pub(crate) networks: &'a [Value],
}

impl NewInfraEnv<'_> {
    pub(crate) fn body(&self) -> String {
        let pull_secret = serde_json::json!({"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}});
        let mut body = serde_json::json!({
            "name": self.name, "openshift_version": self.version, "image_type": "full-iso",
            "pull_secret": pull_secret.to_string(),
            "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}],
        });
        if let Some(body) = body.as_object_mut().filter(|_| !self.networks.is_empty()) {
            body.insert("static_network_config".to_owned(), self.networks.into());
        }
        body.to_string()
    }
}

/// Creates an infra-env and returns the path of its full ISO.
///
/// # Errors
///
/// Returns an error if the server refuses.
pub(crate) fn make(connection: &mut Connection, target: &Target, name: &str) -> Result<String> {
    let wish = NewInfraEnv { name, version: "4.14", networks: &[] };
    Ok(format!("/i/{}/full.iso", post(connection, target, &wish.body())?))
}

/// Creates an infra-env from a request body and returns its id.
///
/// # Errors
///
/// Returns an error if the server refuses.
pub(crate) fn post(connection: &mut Connection, target: &Target, body: &str) -> Result<String> {
    let mut request = Vec::new();
    write_post(&mut request, &target.at(API), "", body.as_bytes());
    let answer =
        connection.fetch(&request, ExpectedResponse::Status(201)).context("creating an infra-env")?;
    let answer: Value = serde_json::from_slice(&answer).context("the response of the API")?;
    let id = answer.get("id").and_then(Value::as_str).context("an infra-env without id")?;
    ensure!(
        id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        "{id:?} is not a valid infra-env id"
    );
    Ok(id.to_owned())
}

/// Returns the SHA-256 digest that the server reports for an image, once it has read all of it.
///
/// # Errors
///
/// Returns an error if the server does not report one.
pub(crate) fn digest(image: &Target) -> Result<String> {
    let sidecar = image.at(&format!("{}.sha256", image.path));
    let mut request = Vec::new();
    write_get(&mut request, &sidecar, None);
    let start = std::time::Instant::now();
    loop {
        interrupt::check()?;
        let answer = Connection::open(&sidecar)
            .and_then(|mut connection| connection.fetch(&request, ExpectedResponse::Status(200)));
        match answer {
            Ok(text) => {
                let text = String::from_utf8(text).context("the digest")?;
                return Ok(text.split_whitespace().next().unwrap_or_default().to_owned());
            }
            Err(error) if start.elapsed() > DIGEST => return Err(error).context("the digest of the image"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
}
