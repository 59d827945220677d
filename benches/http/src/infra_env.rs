//! Infra-envs, made through the API of Kindling.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::client::{Connection, Target, write_get};
use crate::exchange::Wanted;
use crate::interrupt;

/// Where they are.
pub(crate) const API: &str = "/api/assisted-install/v2/infra-envs";
/// How long the digest of an image may take, which is made behind everybody's back.
const DIGEST: std::time::Duration = std::time::Duration::from_secs(300);

/// An infra-env that is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// The static networks of its machines, as the API takes them.
    pub(crate) networks: &'a [Value],
}

impl Wish<'_> {
    /// The body of the request that makes it.
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

/// Makes an infra-env, and gives the path of its full ISO.
///
/// # Errors
///
/// When the server does not make it.
pub(crate) fn make(connection: &mut Connection, target: &Target, name: &str) -> Result<String> {
    let wish = Wish { name, version: "4.14", networks: &[] };
    Ok(format!("/i/{}/full.iso", post(connection, target, &wish.body())?))
}

/// Makes an infra-env by the body of a request, and gives its id.
///
/// # Errors
///
/// When the server does not make it.
pub(crate) fn post(connection: &mut Connection, target: &Target, body: &str) -> Result<String> {
    let request = format!(
        "POST {API} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        target.authority,
        body.len(),
    );
    let answer = connection.fetch(request.as_bytes(), Wanted::Status(201)).context("making an infra-env")?;
    let answer: Value = serde_json::from_slice(&answer).context("the answer of the API")?;
    let id = answer.get("id").and_then(Value::as_str).context("an infra-env without id")?;
    ensure!(
        id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        "{id:?} is no id of an infra-env"
    );
    Ok(id.to_owned())
}

/// The SHA-256 of an image as the server tells it, once it has read all of it.
///
/// # Errors
///
/// When it does not tell.
pub(crate) fn digest(image: &Target) -> Result<String> {
    let sidecar = image.at(&format!("{}.sha256", image.path));
    let mut request = Vec::new();
    write_get(&mut request, &sidecar, None);
    let begun = std::time::Instant::now();
    loop {
        interrupt::check()?;
        let answer = Connection::open(&sidecar)
            .and_then(|mut connection| connection.fetch(&request, Wanted::Status(200)));
        match answer {
            Ok(text) => {
                let text = String::from_utf8(text).context("the digest")?;
                return Ok(text.split_whitespace().next().unwrap_or_default().to_owned());
            }
            Err(error) if begun.elapsed() > DIGEST => return Err(error).context("the digest of the image"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
}
