//! Connections of one user to the API server, or to a fault proxy.

use std::path::Path;

use kube::{Client, Config};
use serde_json::json;

/// The URL of a server, and the token of a user.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) server: String,
    /// Certificate of the authority, in DER.
    pub(super) authority: Vec<u8>,
    pub(super) token: String,
}

impl Connection {
    /// Returns a client bound to the current runtime.
    pub(super) fn client(self) -> Client {
        Client::try_from(self.config()).unwrap()
    }

    /// Returns a client that reports responses 429, 503 and 504, instead of repeating the request.
    pub(super) fn client_without_retries(self) -> Client {
        let mut config = self.config();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    fn config(self) -> Config {
        let mut config = Config::new(self.server.parse().unwrap());
        config.root_cert = Some(vec![self.authority]);
        config.auth_info.token = Some(self.token.into());
        config
    }

    /// Returns the text of a kubeconfig.
    pub(super) fn kubeconfig(&self, authority: &Path, namespace: &str) -> String {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "hub",
                "cluster": {"server": self.server, "certificate-authority": authority},
            }],
            "users": [{"name": "hub", "user": {"token": self.token}}],
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub", "namespace": namespace}}],
            "current-context": "hub",
        });
        config.to_string()
    }
}
