//! Checks that pull secrets are well formed and cover the required registries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::error::InvalidValue;

/// The images that hosts must be able to pull, and the registries that do not need credentials.
#[derive(Clone, Copy, Debug)]
pub struct RequiredRegistries<'a> {
    /// References of the images.
    pub images: &'a [&'a str],
    /// Registries, or paths in registries, that do not need credentials.
    pub public: &'a [String],
}

/// Checks that a pull secret is well formed and contains the required credentials.
///
/// # Errors
///
/// Returns an error if the text is not a pull secret, or if the credentials of a required registry are missing. The
/// error never contains parts of the pull secret other than registry names.
pub fn check_pull_secret(text: &str, required: RequiredRegistries<'_>) -> Result<(), InvalidValue> {
    let json: Value = serde_json::from_str(text.trim())
        .map_err(|_| InvalidValue::new("pull secret must be a well-formed JSON"))?;
    // Go's JSON decoder matches this key case-insensitively, but not the registry names below it.
    let auths =
        json.as_object().and_then(|map| map.iter().rfind(|(key, _)| key.eq_ignore_ascii_case("auths")));
    let auths = auths.and_then(|(_, auths)| auths.as_object()).filter(|auths| !auths.is_empty());
    let auths =
        auths.ok_or_else(|| InvalidValue::new("pull secret must contain 'auths' JSON-object field"))?;
    for (registry, entry) in auths {
        check_entry(registry, entry)?;
    }
    match required.images.iter().find(|image| !is_covered(image, auths, required.public)) {
        Some(image) => {
            Err(InvalidValue::new(format!("pull secret must contain auth for {:?}", repository(image))))
        }
        None => Ok(()),
    }
}

fn check_entry(registry: &str, entry: &Value) -> Result<(), InvalidValue> {
    let Some(entry) = entry.as_object() else {
        return Err(InvalidValue::new(format!(
            "invalid pull secret: the entry of {registry:?} is not a JSON-object"
        )));
    };
    let auth = match entry.get("auth") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(auth)) if auth.is_empty() => return Ok(()),
        Some(Value::String(auth)) => auth,
        Some(_) => {
            return Err(InvalidValue::new(format!(
                "invalid pull secret: 'auth' field of {registry:?} should be a string"
            )));
        }
    };
    let Ok(decoded) = BASE64.decode(auth) else {
        return Err(InvalidValue::new(format!(
            "invalid pull secret: 'auth' field of {registry:?} is not base64-encoded"
        )));
    };
    match decoded.iter().position(|byte| *byte == b':') {
        Some(at) if at > 0 && at + 1 < decoded.len() => Ok(()),
        _ => Err(InvalidValue::new(format!(
            "invalid pull secret: 'auth' for {registry} is not in 'user:password' format"
        ))),
    }
}

/// Returns the registry and path of an image reference, without tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or_default();
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// Returns `true` if the pull secret has credentials for the image's registry or for a parent of its path, or if none
/// are needed.
fn is_covered(image: &str, auths: &Map<String, Value>, public: &[String]) -> bool {
    let mut place = repository(image);
    if place.is_empty() {
        return true;
    }
    loop {
        let is_known = auths.contains_key(place)
            || public.iter().any(|registry| registry == place)
            || (place == "docker.io" && auths.contains_key("https://index.docker.io/v1/"));
        if is_known || place == "registry.stage.redhat.io" {
            return true;
        }
        match place.rsplit_once('/') {
            Some((parent, _)) => place = parent,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), InvalidValue> {
        check_pull_secret(text, RequiredRegistries { images: &[], public: &[] })
    }

    #[test]
    fn rejects_entries_without_user_and_password() {
        check(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}, "other": {"auth": ""}}}"#).unwrap();
        for (text, reason) in [
            ("{", "pull secret must be a well-formed JSON"),
            ("[]", "pull secret must contain 'auths' JSON-object field"),
            (r#"{"auths": {}}"#, "pull secret must contain 'auths' JSON-object field"),
            (
                r#"{"auths": {"a": {"auth": "?"}}}"#,
                "invalid pull secret: 'auth' field of \"a\" is not base64-encoded",
            ),
            (
                r#"{"auths": {"a": {"auth": "dXNlcg=="}}}"#,
                "invalid pull secret: 'auth' for a is not in 'user:password' format",
            ),
            (
                r#"{"auths": {"a": {"auth": 1}}}"#,
                "invalid pull secret: 'auth' field of \"a\" should be a string",
            ),
        ] {
            assert_eq!(check(text).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn auths_key_ignores_case() {
        check(r#"{"AUTHS": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#).unwrap();
        check(r#"{"Auths": {}, "auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#).unwrap();
        assert!(check(r#"{"AUTHS": {"quay.io": {"auth": "?"}}}"#).is_err());
    }

    #[test]
    fn images_need_credentials_unless_their_registry_is_public() {
        let secret =
            r#"{"auths": {"quay.io/team": {"auth": "dXNlcjpwYXNz"}, "https://index.docker.io/v1/": {}}}"#;
        let check = |image: &str, public: &[String]| {
            check_pull_secret(secret, RequiredRegistries { images: &[image], public })
        };
        check("quay.io/team/agent:v1", &[]).unwrap();
        check("docker.io/library/agent@sha256:00", &[]).unwrap();
        check("registry.stage.redhat.io/agent", &[]).unwrap();
        check("localhost:5000/agent:v1", &["localhost:5000".to_owned()]).unwrap();
        let reason = check("quay.io/other/agent:v1", &[]).unwrap_err();
        assert_eq!(reason.to_string(), "pull secret must contain auth for \"quay.io/other/agent\"");
    }
}
