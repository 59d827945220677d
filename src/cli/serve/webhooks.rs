//! The options for the admission webhooks of custom resources.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use operator::{WebhookCertificate, WebhookEndpoint, WebhookSettings, WebhookTls};
use reqwest::Url;
use tokio::net::TcpListener;

use super::private_key::warn_if_exposed;
use crate::cli::listen_address::listen_error;
use crate::http::{Certificate, TlsRules};
use crate::trust;

/// The names of the options and variables, for messages.
const LISTEN: &str = "--kube-webhooks-listen (KINDLING_KUBE_WEBHOOKS_LISTEN)";
const SERVICE: &str = "--kube-webhooks-service (KINDLING_KUBE_WEBHOOKS_SERVICE)";
const URL: &str = "--kube-webhooks-url (KINDLING_KUBE_WEBHOOKS_URL)";
const CERT_FILE: &str = "--kube-webhooks-cert-file (KINDLING_KUBE_WEBHOOKS_CERT_FILE)";
const KEY_FILE: &str = "--kube-webhooks-key-file (KINDLING_KUBE_WEBHOOKS_KEY_FILE)";
const CA_FILE: &str = "--kube-webhooks-ca-file (KINDLING_KUBE_WEBHOOKS_CA_FILE)";

/// The HTTPS port, to which the Kubernetes API sends reviews by default.
const HTTPS_PORT: u16 = 443;

#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(super) struct WebhookOptions {
    /// Address to serve admission webhooks on, always with TLS: an IP address and a port, such as 0.0.0.0:9443
    /// [default: no webhooks]
    ///
    /// Webhooks deny custom resources with faults when they are applied. The leader registers them with the Kubernetes
    /// API, which refuses changes of these resources while no replica responds.
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_LISTEN", value_name = "ADDRESS", value_parser = parse_address)]
    kube_webhooks_listen: Option<SocketAddr>,
    /// Service through which the Kubernetes API reaches the webhooks, in the namespace of the lease. Without a port:
    /// 443
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_SERVICE", value_name = "NAME[:PORT]", value_parser = parse_service)]
    kube_webhooks_service: Option<ServicePort>,
    /// URL at which the Kubernetes API reaches the webhooks, if they run outside of the cluster
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_URL", value_name = "https://HOST[:PORT]", value_parser = parse_url)]
    kube_webhooks_url: Option<HostAndPort>,
    /// File with the certificate of the webhooks and its chain, in PEM [default: the leader makes certificates, in the
    /// Secret kindling-webhook-certificates in the namespace of the lease]
    ///
    /// The files of the certificate, the key and the CA are read again when they change.
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_CERT_FILE", value_name = "FILE")]
    kube_webhooks_cert_file: Option<PathBuf>,
    /// File with the private key of the webhooks' certificate, in PEM
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_KEY_FILE", value_name = "FILE")]
    kube_webhooks_key_file: Option<PathBuf>,
    /// File with the CA certificates, in PEM, that the Kubernetes API trusts for the webhooks' certificate [default:
    /// another program adds them to the ValidatingWebhookConfigurations]
    #[arg(long, env = "KINDLING_KUBE_WEBHOOKS_CA_FILE", value_name = "FILE")]
    kube_webhooks_ca_file: Option<PathBuf>,
}

/// The name and the port of a Kubernetes Service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ServicePort {
    name: String,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostAndPort {
    host: String,
    port: u16,
}

impl WebhookOptions {
    /// Checks the options and the files in them. `is_enabled` is `true` if custom resources are reconciled.
    ///
    /// # Errors
    ///
    /// Returns an error that contains the contradictory options or the path of an unusable file.
    pub(super) fn check(&self, is_enabled: bool, rules: &TlsRules) -> Result<()> {
        if self.kube_webhooks_listen.is_none() {
            return match self.dependent_option() {
                Some(option) => Err(anyhow!("{option} has no effect without {LISTEN}")),
                None => Ok(()),
            };
        }
        ensure!(is_enabled, "{LISTEN} needs --kube-api (ENABLE_KUBE_API=true)");
        self.endpoint("")?;
        rules.provider()?;
        if let WebhookCertificate::Files { certificate, key, authorities } = self.certificate()? {
            Certificate::open_with(&certificate, &key, rules)
                .context("cannot use the certificate of the webhooks")?;
            warn_if_exposed(&key);
            authorities.as_deref().map_or(Ok(()), check_authorities)?;
        }
        Ok(())
    }

    /// Starts to listen and returns the settings of the webhooks, or `None` if they are not enabled.
    ///
    /// # Errors
    ///
    /// Returns an error that contains the contradictory options or the address that cannot be used.
    pub(super) async fn settings(
        &self,
        lease_namespace: &str,
        rules: &TlsRules,
    ) -> Result<Option<WebhookSettings>> {
        let Some(address) = self.kube_webhooks_listen else { return Ok(None) };
        let (endpoint, certificate) = (self.endpoint(lease_namespace)?, self.certificate()?);
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| listen_error(address, LISTEN, error))?;
        tracing::info!(address = %listener.local_addr()?, ?endpoint, "serving admission webhooks");
        let mut settings = WebhookSettings::new(listener, endpoint);
        settings.certificate = certificate;
        settings.tls =
            WebhookTls { versions: rules.protocol_versions(), provider: Arc::new(rules.provider()?) };
        Ok(Some(settings))
    }

    /// Returns the first configured option that has no effect without `--kube-webhooks-listen`.
    fn dependent_option(&self) -> Option<&'static str> {
        let options = [
            (self.kube_webhooks_service.is_some(), SERVICE),
            (self.kube_webhooks_url.is_some(), URL),
            (self.kube_webhooks_cert_file.is_some(), CERT_FILE),
            (self.kube_webhooks_key_file.is_some(), KEY_FILE),
            (self.kube_webhooks_ca_file.is_some(), CA_FILE),
        ];
        options.into_iter().find_map(|(is_set, option)| is_set.then_some(option))
    }

    fn endpoint(&self, lease_namespace: &str) -> Result<WebhookEndpoint> {
        match (&self.kube_webhooks_service, &self.kube_webhooks_url) {
            (Some(service), None) => Ok(WebhookEndpoint::Service {
                namespace: lease_namespace.to_owned(),
                name: service.name.clone(),
                port: service.port,
            }),
            (None, Some(url)) => Ok(WebhookEndpoint::Address { host: url.host.clone(), port: url.port }),
            (None, None) => bail!("{LISTEN} needs {SERVICE}, or {URL} outside of the cluster"),
            (Some(_), Some(_)) => bail!("{SERVICE} cannot be used with {URL}"),
        }
    }

    fn certificate(&self) -> Result<WebhookCertificate> {
        match (&self.kube_webhooks_cert_file, &self.kube_webhooks_key_file) {
            (Some(certificate), Some(key)) => Ok(WebhookCertificate::Files {
                certificate: certificate.clone(),
                key: key.clone(),
                authorities: self.kube_webhooks_ca_file.clone(),
            }),
            (Some(_), None) => bail!("{CERT_FILE} needs {KEY_FILE}"),
            (None, Some(_)) => bail!("{KEY_FILE} needs {CERT_FILE}"),
            (None, None) if self.kube_webhooks_ca_file.is_some() => bail!("{CA_FILE} needs {CERT_FILE}"),
            (None, None) => Ok(WebhookCertificate::Managed),
        }
    }
}

fn check_authorities(file: &Path) -> Result<()> {
    let pem = std::fs::read(file).with_context(|| format!("{CA_FILE}: cannot read {}", file.display()))?;
    trust::client_config(&pem)
        .map_err(|error| anyhow!("{CA_FILE}: {} has no valid certificates: {error}", file.display()))?;
    Ok(())
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 0.0.0.0:9443 or [::]:9443".to_owned())
}

fn parse_service(text: &str) -> Result<ServicePort, String> {
    let expected = || "expected the name of a Service, and a port if it is not 443: NAME[:PORT]".to_owned();
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(expected)?),
        None => (text, HTTPS_PORT),
    };
    // The Kubernetes API requires that the name of a Service is an RFC 1035 label.
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_allowed);
    if is_name { Ok(ServicePort { name: name.to_owned(), port }) } else { Err(expected()) }
}

/// Parses the URL of the webhooks, without a path, because the server determines the paths.
fn parse_url(text: &str) -> Result<HostAndPort, String> {
    let expected = || "expected https://HOST[:PORT], without a path".to_owned();
    let url = Url::parse(text).map_err(|_| expected())?;
    let has_more =
        url.path() != "/" || url.query().is_some() || url.fragment().is_some() || text.contains('@');
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(expected());
    };
    if url.scheme() != "https" || has_more {
        return Err(expected());
    }
    Ok(HostAndPort { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use tempfile::TempDir;

    use super::*;
    use crate::http::TlsVersion;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        webhooks: WebhookOptions,
    }

    const MINIMUM: [&str; 4] =
        ["--kube-webhooks-listen", "127.0.0.1:0", "--kube-webhooks-service", "kindling-webhooks"];

    fn parse(line: &[&str]) -> Result<WebhookOptions, String> {
        let command = Command::try_parse_from(["test"].iter().chain(line));
        command.map(|command| command.webhooks).map_err(|error| error.to_string())
    }

    async fn settings_of(line: &[&str]) -> Option<WebhookSettings> {
        let options = parse(line).unwrap();
        options.check(true, &TlsRules::default()).unwrap();
        options.settings("hub", &TlsRules::default()).await.unwrap()
    }

    fn error_of(line: &[&str]) -> String {
        parse(line).unwrap().check(true, &TlsRules::default()).unwrap_err().to_string()
    }

    /// Writes a self-signed certificate and its key.
    fn write_certificate(directory: &TempDir) -> [String; 2] {
        let generated = rcgen::generate_simple_self_signed(["hook.example.com".to_owned()]).unwrap();
        let texts = [generated.cert.pem(), generated.signing_key.serialize_pem()];
        ["tls.crt", "tls.key"].map(|name| {
            let path = directory.path().join(name);
            fs::write(&path, &texts[usize::from(name == "tls.key")]).unwrap();
            path.to_str().unwrap().to_owned()
        })
    }

    #[tokio::test]
    async fn webhooks_are_off_by_default() {
        assert!(settings_of(&[]).await.is_none());
        parse(&[]).unwrap().check(false, &TlsRules::default()).unwrap();
    }

    #[tokio::test]
    async fn service_is_in_the_namespace_of_the_lease() {
        let service = |port| WebhookEndpoint::Service {
            namespace: "hub".to_owned(),
            name: "kindling-webhooks".to_owned(),
            port,
        };
        let settings = settings_of(&MINIMUM).await.unwrap();
        assert_eq!((settings.endpoint, settings.certificate), (service(443), WebhookCertificate::Managed));
        assert!(settings.listener.local_addr().unwrap().port() > 0);
        let other = ["--kube-webhooks-listen=[::1]:0", "--kube-webhooks-service=kindling-webhooks:9443"];
        assert_eq!(settings_of(&other).await.unwrap().endpoint, service(9443));
    }

    #[tokio::test]
    async fn url_sets_host_and_port() {
        let rows = [
            ("https://hook.example.com", "hook.example.com", 443),
            ("https://hook.example.com:9443/", "hook.example.com", 9443),
            ("https://192.0.2.1:443", "192.0.2.1", 443),
            ("https://[2001:db8::1]:9443", "[2001:db8::1]", 9443),
        ];
        for (url, host, port) in rows {
            let line = [MINIMUM[0], MINIMUM[1], "--kube-webhooks-url", url];
            let expected = WebhookEndpoint::Address { host: host.to_owned(), port };
            assert_eq!(settings_of(&line).await.unwrap().endpoint, expected);
        }
    }

    #[tokio::test]
    async fn rules_for_tls_apply_to_webhooks() {
        let options = parse(&MINIMUM).unwrap();
        let (oldest, suite) = (TlsVersion::V1_3, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned());
        let rules = TlsRules { oldest, suites: vec![suite] };
        let tls = options.settings("hub", &rules).await.unwrap().unwrap().tls;
        assert_eq!(tls.versions.len(), 1);
        assert_eq!(tls.provider.cipher_suites.iter().filter(|suite| suite.tls13().is_none()).count(), 1);
        let rules = TlsRules { suites: vec!["TLS_RSA_WITH_NULL_MD5".to_owned()], ..TlsRules::default() };
        let error = options.check(true, &rules).unwrap_err().to_string();
        assert!(error.contains("TLS_RSA_WITH_NULL_MD5"), "{error}");
    }

    #[tokio::test]
    async fn certificate_is_read_from_files() {
        let directory = TempDir::new().unwrap();
        let [certificate, key] = write_certificate(&directory);
        let files = ["--kube-webhooks-cert-file", &certificate, "--kube-webhooks-key-file", &key];
        let expected = |authorities| WebhookCertificate::Files {
            certificate: PathBuf::from(&certificate),
            key: PathBuf::from(&key),
            authorities,
        };
        let settings = settings_of(&[&MINIMUM[..], &files].concat()).await.unwrap();
        assert_eq!(settings.certificate, expected(None));
        let authorities = ["--kube-webhooks-ca-file", &certificate];
        let settings = settings_of(&[&MINIMUM[..], &files, &authorities].concat()).await.unwrap();
        assert_eq!(settings.certificate, expected(Some(PathBuf::from(&certificate))));
    }

    #[test]
    fn rejects_malformed_values() {
        for text in ["", "9443", "localhost:9443", "0.0.0.0", "0.0.0.0:65536"] {
            assert!(parse(&["--kube-webhooks-listen", text]).unwrap_err().contains("0.0.0.0:9443"), "{text}");
        }
        for text in ["", "Hook", "a.b", "a_b", "-a", "a-", "1a", "a:", "a:0", "a:65536", "a:b", "a:1:2"] {
            let option = format!("--kube-webhooks-service={text}");
            assert!(parse(&[&option]).unwrap_err().contains("NAME[:PORT]"), "{text}");
        }
        for text in [
            "",
            "hook",
            "http://hook",
            "https://",
            "https://a/b",
            "https://a?b",
            "https://a#b",
            "https://u@a",
            "ftp://a",
        ] {
            let option = format!("--kube-webhooks-url={text}");
            assert!(parse(&[&option]).unwrap_err().contains("https://HOST[:PORT]"), "{text}");
        }
    }

    #[test]
    fn rejects_contradictory_options() {
        let url = ["--kube-webhooks-url", "https://a"];
        assert_eq!(
            error_of(&MINIMUM[..2]),
            format!("{LISTEN} needs {SERVICE}, or {URL} outside of the cluster")
        );
        assert_eq!(error_of(&[&MINIMUM[..], &url].concat()), format!("{SERVICE} cannot be used with {URL}"));
        let disabled = parse(&MINIMUM).unwrap().check(false, &TlsRules::default()).unwrap_err().to_string();
        assert_eq!(disabled, format!("{LISTEN} needs --kube-api (ENABLE_KUBE_API=true)"));
        let rows = [
            ("--kube-webhooks-cert-file", CERT_FILE, KEY_FILE),
            ("--kube-webhooks-key-file", KEY_FILE, CERT_FILE),
            ("--kube-webhooks-ca-file", CA_FILE, CERT_FILE),
        ];
        for (option, name, other) in rows {
            let file = [option, "x.pem"];
            assert_eq!(error_of(&file), format!("{name} has no effect without {LISTEN}"));
            assert_eq!(error_of(&[&MINIMUM[..], &file].concat()), format!("{name} needs {other}"));
        }
        assert_eq!(error_of(&MINIMUM[2..]), format!("{SERVICE} has no effect without {LISTEN}"));
        assert_eq!(error_of(&url), format!("{URL} has no effect without {LISTEN}"));
    }

    #[test]
    fn rejects_unusable_files() {
        let directory = TempDir::new().unwrap();
        let [certificate, key] = write_certificate(&directory);
        let error = |[certificate, key, authorities]: [&str; 3]| {
            let files = [
                ["--kube-webhooks-cert-file", certificate],
                ["--kube-webhooks-key-file", key],
                ["--kube-webhooks-ca-file", authorities],
            ];
            let options = parse(&[&MINIMUM[..], &files.concat()].concat()).unwrap();
            format!("{:#}", options.check(true, &TlsRules::default()).unwrap_err())
        };
        let missing = directory.path().join("missing.pem").to_str().unwrap().to_owned();
        let text = error([&missing, &key, &certificate]);
        assert!(
            text.starts_with("cannot use the certificate of the webhooks: ") && text.contains(&missing),
            "{text}"
        );
        let text = error([&certificate, &certificate, &certificate]);
        assert!(text.starts_with("cannot use the certificate of the webhooks: "), "{text}");
        let text = error([&certificate, &key, &missing]);
        assert!(text.starts_with(&format!("{CA_FILE}: cannot read {missing}")), "{text}");
        let text = error([&certificate, &key, &key]);
        assert_eq!(text, format!("{CA_FILE}: {key} has no valid certificates: no certificates found"));
    }

    #[tokio::test]
    async fn port_in_use_is_reported_with_the_option() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let line = ["--kube-webhooks-listen", &address, MINIMUM[2], MINIMUM[3]];
        let error =
            parse(&line).unwrap().settings("hub", &TlsRules::default()).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("the port is in use; choose another one with {LISTEN}")), "{error}");
    }
}
