//! Infra-envs, made through the API of Kindling.

use anyhow::{Context, Result, ensure};

use crate::client::{Connection, Target, write_get};
use crate::exchange::Wanted;
use crate::interrupt;

const API: &str = "/api/assisted-install/v2/infra-envs";
/// How long the digest of an image may take, which is made behind everybody's back.
const DIGEST: std::time::Duration = std::time::Duration::from_secs(300);

/// Makes an infra-env, and gives the path of its full ISO.
///
/// # Errors
///
/// When the server does not make it.
pub(crate) fn make(connection: &mut Connection, target: &Target, name: &str) -> Result<String> {
    let pull_secret = serde_json::json!({"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}});
    let body = serde_json::json!({
        "name": name, "openshift_version": "4.14", "image_type": "full-iso",
        "pull_secret": pull_secret.to_string(),
        "kernel_arguments": [{"operation": "append", "value": "console=ttyS0"}],
    })
    .to_string();
    let request = format!(
        "POST {API} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        target.authority,
        body.len(),
    );
    let answer = connection.fetch(request.as_bytes(), Wanted::Status(201)).context("making an infra-env")?;
    let answer: serde_json::Value = serde_json::from_slice(&answer).context("the answer of the API")?;
    let id = answer.get("id").and_then(serde_json::Value::as_str).context("an infra-env without id")?;
    ensure!(
        id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        "{id:?} is no id of an infra-env"
    );
    Ok(format!("/i/{id}/full.iso"))
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
