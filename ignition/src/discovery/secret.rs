//! Secrets: what lets somebody in, and never shows in a `Debug` output or an error.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::input::InputError;

/// What stands in place of a secret.
pub(crate) const REDACTED: &str = "*****";

/// The token with which an agent proves itself to the service.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes a token.
    ///
    /// # Errors
    ///
    /// When it is empty, or holds a blank or a control character, which no HTTP header could carry.
    pub fn new(token: impl Into<String>) -> Result<Self, InputError> {
        let token = token.into();
        if token.is_empty() {
            return Err(InputError::secret("token", "is empty"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InputError::secret("token", "holds a character that is not printable ASCII"));
        }
        Ok(Self(token))
    }

    /// The token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({REDACTED})")
    }
}

/// Credentials of container registries, in the JSON form of podman and docker.
#[derive(Clone, PartialEq, Eq)]
pub struct PullSecret {
    text: String,
    tokens: BTreeMap<String, String>,
}

const PULL_SECRET: &str = "pull_secret";

impl PullSecret {
    /// The registry whose credentials the hosted service takes as the agent's token.
    pub const SERVICE_REGISTRY: &str = "cloud.openshift.com";

    /// Reads a pull secret. Blanks around it are dropped.
    ///
    /// # Errors
    ///
    /// When it is no JSON object with a filled object `auths`, or when an entry of that has an `auth` that is not
    /// user and password in base64. An entry without `auth` passes.
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
        let refuse = |reason: String| Err(InputError::secret(PULL_SECRET, reason));
        let text = text.trim();
        let json: Value = match serde_json::from_str(text) {
            Ok(json) => json,
            Err(error) => {
                // The error's own text could quote the secret.
                let (line, column) = (error.line(), error.column());
                return refuse(format!("is not valid JSON at line {line}, column {column}"));
            }
        };
        let Some(auths) = json.get("auths").and_then(Value::as_object).filter(|auths| !auths.is_empty())
        else {
            return refuse("is no JSON object with an object \"auths\" that names a registry".to_owned());
        };
        let mut tokens = BTreeMap::new();
        for (registry, entry) in auths {
            let Some(entry) = entry.as_object() else {
                return refuse(format!("the entry of {registry:?} is no object"));
            };
            match entry.get("auth") {
                None | Some(Value::Null) => {}
                Some(Value::String(auth)) if auth.is_empty() => {}
                Some(Value::String(auth)) if is_user_and_password(auth) => {
                    tokens.insert(registry.clone(), auth.clone());
                }
                Some(_) => {
                    return refuse(format!("the auth of {registry:?} is not user:password in base64"));
                }
            }
        }
        Ok(Self { text: text.to_owned(), tokens })
    }

    /// Reads a pull secret that is wrapped in base64, as Metal3 hands it around. Blanks and line breaks are dropped.
    ///
    /// # Errors
    ///
    /// When it is not base64 of a text, or that is not what [`Self::parse`] takes.
    pub fn from_base64(text: &str) -> Result<Self, InputError> {
        let text: String = text.split_ascii_whitespace().collect();
        let refuse = |reason: &str| InputError::secret(PULL_SECRET, reason);
        let bytes = BASE64.decode(text).map_err(|_| refuse("is not base64"))?;
        Self::parse(std::str::from_utf8(&bytes).map_err(|_| refuse("is not base64 of a text"))?)
    }

    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The agent's token at the hosted service: the credentials of [`Self::SERVICE_REGISTRY`].
    ///
    /// # Errors
    ///
    /// When the pull secret has none.
    pub fn service_token(&self) -> Result<Token, InputError> {
        let registry = Self::SERVICE_REGISTRY;
        match self.tokens.get(registry) {
            Some(auth) => Token::new(auth.clone()),
            None => Err(InputError::secret(PULL_SECRET, format!("has no auth for {registry:?}"))),
        }
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
        f.debug_set().entries(self.tokens.keys()).finish()
    }
}

/// The hash of the password of the user `core`, as `crypt` makes it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Takes a hash such as `$6$salt$...`.
    ///
    /// # Errors
    ///
    /// When the text does not have that form. A password itself does not.
    pub fn parse(text: &str) -> Result<Self, InputError> {
        let is_hash = |byte: u8| byte.is_ascii_alphanumeric() || b"./$=,+-".contains(&byte);
        let parts = text.split('$').count();
        if text.starts_with('$') && parts >= 4 && text.bytes().all(is_hash) {
            return Ok(Self(text.to_owned()));
        }
        Err(InputError::secret("core_password_hash", "is not a hash of the form $id$salt$hash"))
    }

    /// The hash itself.
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
    fn pull_secrets_have_auths() {
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
            (r#""hunter2""#, "no JSON object"),
            (r#"{"auths":{}}"#, "no JSON object"),
            (r#"{"auths":["hunter2"]}"#, "no JSON object"),
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
    fn pull_secrets_may_be_wrapped() {
        let text = r#"{"auths":{"a":{"auth":"dTpw"}}}"#;
        let wrapped = BASE64.encode(text);
        let (start, end) = wrapped.split_at(20);
        for wrapped in [&wrapped, &format!(" {start}\n{end}\n")] {
            assert_eq!(PullSecret::from_base64(wrapped).unwrap().reveal(), text);
        }
        let inner = BASE64.encode("hunter2");
        for (bad, reason) in [
            (text, "is not base64"),
            ("/w==", "base64 of a text"),
            (&inner, "not valid JSON"),
            ("", "not valid JSON"),
        ] {
            let error = PullSecret::from_base64(bad).unwrap_err().to_string();
            assert!(error.starts_with("pull_secret: ") && error.contains(reason), "{error}");
            assert!(!error.contains("hunter2") && !error.contains("dTpw"), "{error}");
        }
    }

    #[test]
    fn the_hosted_service_takes_its_own_credentials_as_token() {
        let secret = PullSecret::parse(r#"{"auths":{"cloud.openshift.com":{"auth":"dTpw"}}}"#).unwrap();
        assert_eq!(secret.service_token().unwrap().reveal(), "dTpw");
        let other = PullSecret::parse(r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#).unwrap();
        let error = other.service_token().unwrap_err().to_string();
        assert_eq!(error, r#"pull_secret: has no auth for "cloud.openshift.com""#);
    }

    #[test]
    fn tokens_fit_into_a_header() {
        assert!(Token::new("eyJ.a-b_c").is_ok());
        for bad in ["", "a b", "a\nb", "ä"] {
            assert!(Token::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_no_hash() {
        assert!(PasswordHash::parse("$6$salt$hash").is_ok());
        for bad in ["", "!", "hunter2", "$6$salt", "$6$s:x$hash", "$6$s\n$hash"] {
            let error = PasswordHash::parse(bad).unwrap_err().to_string();
            assert!(bad.is_empty() || bad == "!" || !error.contains(bad), "{error}");
        }
    }

    #[test]
    fn nothing_shows_in_debug() {
        let secret = PullSecret::parse(r#"{"auths":{"quay.io":{"auth":"dTpw"}}}"#).unwrap();
        let all = format!("{secret:?} {:?} {:?}", Token::new("hunter2"), PasswordHash::parse("$6$a$hunter2"));
        assert!(!all.contains("hunter2") && !all.contains("dTpw"), "{all}");
        assert!(all.contains("quay.io"), "{all}");
    }
}
