//! Secrets: tokens, pull secrets and password hashes. `Debug` output and errors do not contain them.
//!
//! The types do not use `secrecy::SecretString`, because each type validates its text, and the `Debug` output of a pull
//! secret contains the names of its registries. The only additional feature of `secrecy` is that it wipes memory. That
//! has no effect if the config is serialized into plain buffers.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::input::InputError;

/// The text that replaces a secret.
pub(crate) const REDACTED: &str = "*****";

/// The token that an agent sends to the service as its credential.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentToken(String);

impl AgentToken {
    /// Creates a token.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is empty or contains characters other than printable ASCII, because an HTTP header
    /// cannot contain them.
    pub fn new(token: impl Into<String>) -> Result<Self, InputError> {
        let token = token.into();
        if token.is_empty() {
            return Err(InputError::secret("token", "is empty"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InputError::secret("token", "contains a character that is not printable ASCII"));
        }
        Ok(Self(token))
    }

    /// Returns the token in plain text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentToken({REDACTED})")
    }
}

/// Credentials for container registries, in the JSON form of podman and docker.
#[derive(Clone, PartialEq, Eq)]
pub struct PullSecret {
    text: String,
    /// The names of the registries, for `Debug`.
    registries: Vec<String>,
}

const PULL_SECRET_FIELD: &str = "pull_secret";

impl PullSecret {
    /// Parses a pull secret. White space around it is removed.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object with a non-empty object `auths`, or if an entry of `auths` has
    /// an `auth` that is not `user:password` in base64. An entry without `auth` is accepted.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::discovery::PullSecret;
    ///
    /// let secret = PullSecret::parse(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#)?;
    /// assert!(!format!("{secret:?}").contains("dXNlcjpwYXNz"));
    /// let error = PullSecret::parse(r#"{"auths": {"quay.io": {"auth": "dXNlcg=="}}}"#).unwrap_err();
    /// assert_eq!(error.to_string(), r#"pull_secret: the auth of "quay.io" is not user:password in base64"#);
    /// # Ok::<(), ignition::discovery::InputError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let refuse = |reason: String| Err(InputError::secret(PULL_SECRET_FIELD, reason));
        let text = text.trim();
        let json: Value = serde_json::from_str(text).map_err(|error| {
            // The text of the parser's error could quote the secret.
            let (line, column) = (error.line(), error.column());
            let reason = format!("not valid JSON at line {line}, column {column}");
            InputError::secret(PULL_SECRET_FIELD, reason)
        })?;
        let Some(auths) = json.get("auths").and_then(Value::as_object).filter(|auths| !auths.is_empty())
        else {
            return refuse("not a JSON object with an object \"auths\" that lists a registry".to_owned());
        };
        for (registry, entry) in auths {
            let Some(entry) = entry.as_object() else {
                return refuse(format!("the entry of {registry:?} is not an object"));
            };
            match entry.get("auth") {
                None | Some(Value::Null) => {}
                Some(Value::String(auth)) if auth.is_empty() => {}
                Some(Value::String(auth)) if is_user_and_password(auth) => {}
                Some(_) => {
                    return refuse(format!("the auth of {registry:?} is not user:password in base64"));
                }
            }
        }
        Ok(Self { text: text.to_owned(), registries: auths.keys().cloned().collect() })
    }

    /// Parses a base64-encoded pull secret, the form of Metal3's setting `IRONIC_AGENT_PULL_SECRET`. The operator uses
    /// it for [`StandaloneIronic`](crate::ironic::StandaloneIronic). White space is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not base64, if the decoded bytes are not UTF-8, or if [`Self::parse`] rejects
    /// the decoded text.
    pub fn from_base64(text: &str) -> Result<Self, InputError> {
        let text: String = text.split_ascii_whitespace().collect();
        let refuse = |reason: &str| InputError::secret(PULL_SECRET_FIELD, reason);
        let bytes = BASE64.decode(text).map_err(|_| refuse("is not base64"))?;
        Self::parse(std::str::from_utf8(&bytes).map_err(|_| refuse("is not base64-encoded text"))?)
    }

    /// Returns the pull secret in plain text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

fn is_user_and_password(auth: &str) -> bool {
    BASE64.decode(auth).is_ok_and(|decoded| {
        let colon = decoded.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| at > 0 && at + 1 < decoded.len())
    })
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.registries).finish()
    }
}

/// The password hash of the user `core`, in the form of `crypt(5)`.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Parses a hash such as `$6$salt$...`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not have that form, for example if it is a plain password.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let is_hash = |byte: u8| byte.is_ascii_alphanumeric() || b"./$=,+-".contains(&byte);
        let parts = text.split('$').count();
        if text.starts_with('$') && parts >= 4 && text.bytes().all(is_hash) {
            return Ok(Self(text.to_owned()));
        }
        Err(InputError::secret("core_password_hash", "is not a hash of the form $id$salt$hash"))
    }

    /// Returns the hash in plain text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasswordHash({REDACTED})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_pull_secrets_without_auths() {
        for good in [
            r#"{"auths":{"a":{"auth":"dTpw"}}}"#,
            "\n{\"auths\":{\"a\":{}}}\n",
            r#"{"auths":{"a":{"auth":""}},"other":1}"#,
        ] {
            assert_eq!(PullSecret::parse(good).unwrap().reveal(), good.trim());
        }
        for (bad, reason) in [
            ("", "not valid JSON at line 1"),
            ("hunter2", "not valid JSON"),
            (r#""hunter2""#, "not a JSON object"),
            (r#"{"auths":{}}"#, "not a JSON object"),
            (r#"{"auths":["hunter2"]}"#, "not a JSON object"),
            (r#"{"auths":{"a":"hunter2"}}"#, r#"the entry of "a""#),
            (r#"{"auths":{"a":{"auth":"hunter2"}}}"#, r#"the auth of "a""#),
            (r#"{"auths":{"a":{"auth":"Og=="}}}"#, r#"the auth of "a""#),
        ] {
            let error = PullSecret::parse(bad).unwrap_err().to_string();
            assert!(error.starts_with("pull_secret: ") && error.contains(reason), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn base64_pull_secrets_may_have_line_breaks() {
        let text = r#"{"auths":{"a":{"auth":"dTpw"}}}"#;
        let wrapped = BASE64.encode(text);
        let (start, end) = wrapped.split_at(20);
        for wrapped in [&wrapped, &format!(" {start}\n{end}\n")] {
            assert_eq!(PullSecret::from_base64(wrapped).unwrap().reveal(), text);
        }
        let inner = BASE64.encode("hunter2");
        for (bad, reason) in [
            (text, "is not base64"),
            ("/w==", "base64-encoded text"),
            (&inner, "not valid JSON"),
            ("", "not valid JSON"),
        ] {
            let error = PullSecret::from_base64(bad).unwrap_err().to_string();
            assert!(error.starts_with("pull_secret: ") && error.contains(reason), "{error}");
            assert!(!error.contains("hunter2") && !error.contains("dTpw"), "{error}");
        }
    }

    #[test]
    fn rejects_tokens_that_no_header_can_carry() {
        assert!(AgentToken::new("eyJ.a-b_c").is_ok());
        for bad in ["", "a b", "a\nb", "ä"] {
            assert!(AgentToken::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rejects_invalid_password_hashes() {
        assert!(PasswordHash::parse("$6$salt$hash").is_ok());
        for bad in ["", "!", "hunter2", "$6$salt", "$6$s:x$hash", "$6$s\n$hash"] {
            let error = PasswordHash::parse(bad).unwrap_err().to_string();
            assert!(bad.is_empty() || bad == "!" || !error.contains(bad), "{error}");
        }
    }

    #[test]
    fn debug_shows_no_secrets() {
        let secret = PullSecret::parse(r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#).unwrap();
        let all =
            format!("{secret:?} {:?} {:?}", AgentToken::new("hunter2"), PasswordHash::parse("$6$a$hunter2"));
        assert!(!all.contains("hunter2") && !all.contains("dTpw"), "{all}");
        assert!(all.contains("quay.io"), "{all}");
    }
}
