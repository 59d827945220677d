//! Sends requests to a server, each with a timeout. Stops sending after several timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ProtocolVersion, SupportedProtocolVersion};

use super::certificate::{HandshakeReport, TrustedAuthorities};
use super::fault::RequestFault;
use super::report::quote_for_report;
use super::target::TargetUrl;
use super::wire::{WireConnection, WireRequest, WireResponse};
use super::{DoctorError, DoctorOptions};

/// Maximum number of timeouts. No more requests are sent afterwards, so the time of an examination is bounded.
const MAX_SLOW: u32 = 3;
/// The TLS versions that current clients offer.
pub(super) const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
/// The TLS version that older clients offer.
pub(super) const OLDER: [&SupportedProtocolVersion; 1] = [&TLS12];

/// The state shared by all requests of an examination.
pub(super) struct DoctorSession {
    /// The server of the examined URL. Only this server receives `headers`.
    origin: TargetUrl,
    headers: HeaderMap,
    trust: TrustedAuthorities,
    takes_any_certificate: bool,
    timeout: Duration,
    slow: AtomicU32,
}

impl DoctorSession {
    pub(super) fn new(origin: &TargetUrl, options: &DoctorOptions) -> Result<Self, DoctorError> {
        Ok(Self {
            origin: origin.clone(),
            headers: options.headers.clone(),
            trust: TrustedAuthorities::new(options.ca_file.as_deref())?,
            takes_any_certificate: options.dangerously_any_certificate,
            timeout: options.timeout,
            slow: AtomicU32::new(0),
        })
    }

    pub(super) fn trusted_authorities(&self) -> &TrustedAuthorities {
        &self.trust
    }

    /// Sends a request on a new connection.
    pub(super) async fn exchange(
        &self,
        target: &TargetUrl,
        request: &WireRequest,
    ) -> Result<WireResponse, RequestFault> {
        self.with_timeout(async {
            let mut wire = self.open_connection(target).await?;
            wire.exchange(request, &self.serialize_request(target, request, "close")).await
        })
        .await
    }

    /// Sends requests one after the other on one connection. Returns the responses up to the first failure, and the
    /// failure.
    pub(super) async fn exchange_all(
        &self,
        target: &TargetUrl,
        requests: &[WireRequest],
    ) -> Result<(Vec<WireResponse>, Option<RequestFault>), RequestFault> {
        self.with_timeout(async {
            let mut wire = self.open_connection(target).await?;
            let mut responses = Vec::new();
            for request in requests {
                match wire.exchange(request, &self.serialize_request(target, request, "keep-alive")).await {
                    Ok(response) => responses.push(response),
                    Err(fault) => return Ok((responses, Some(fault))),
                }
            }
            Ok((responses, None))
        })
        .await
    }

    /// Sends a HEAD request. Returns the response. The second value is `true` if a body follows.
    pub(super) async fn exchange_head(
        &self,
        target: &TargetUrl,
    ) -> Result<(WireResponse, bool), RequestFault> {
        self.with_timeout(async {
            let request = WireRequest::new("HEAD", 0);
            let mut wire = self.open_connection(target).await?;
            let response =
                wire.exchange(&request, &self.serialize_request(target, &request, "close")).await?;
            Ok((response, wire.has_surplus().await))
        })
        .await
    }

    /// Returns the server's certificate from a handshake with one of these TLS versions. Sends no request.
    pub(super) async fn read_handshake(
        &self,
        target: &TargetUrl,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<HandshakeReport, RequestFault> {
        self.with_timeout(async { Ok(self.open_tls(target, versions).await?.1) }).await
    }

    async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, RequestFault>>,
    ) -> Result<T, RequestFault> {
        if self.slow.load(Ordering::Relaxed) >= MAX_SLOW {
            return Err(RequestFault::Abandoned);
        }
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| {
            self.slow.fetch_add(1, Ordering::Relaxed);
            Err(RequestFault::Slow { after: self.timeout })
        })
    }

    async fn open_connection(&self, target: &TargetUrl) -> Result<WireConnection, RequestFault> {
        if !target.is_https() {
            return Ok(WireConnection::new(connect_tcp(target).await?));
        }
        let (wire, handshake) = self.open_tls(target, &BOTH).await?;
        match self.takes_any_certificate || self.trust.is_trusted(&handshake, target.host()) {
            true => Ok(wire),
            false => Err(RequestFault::Untrusted),
        }
    }

    async fn open_tls(
        &self,
        target: &TargetUrl,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<(WireConnection, HandshakeReport), RequestFault> {
        let failed = |reason: String| RequestFault::Tls { reason: quote_for_report(&reason) };
        let recorder = self.trust.recorder();
        let config =
            self.trust.client_config(versions, &recorder).map_err(|error| failed(error.to_string()))?;
        let name =
            ServerName::try_from(target.host().to_owned()).map_err(|error| failed(error.to_string()))?;
        let stream = connect_tcp(target).await?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(|error| failed(error.to_string()))?;
        let (_, connection) = stream.get_ref();
        let handshake = HandshakeReport {
            chain: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .cloned()
                .map(|certificate| certificate.into_owned())
                .collect(),
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
                _ => "TLS",
            },
            scheme: recorder.scheme(),
        };
        Ok((WireConnection::new(stream), handshake))
    }

    /// Encodes a request. Returns bytes, because header values need not be text.
    fn serialize_request(&self, target: &TargetUrl, request: &WireRequest, connection: &str) -> Vec<u8> {
        let mut message = format!(
            "{} {} {}\r\nHost: {}\r\nUser-Agent: kindling/{} (doctor)\r\nAccept: */*\r\n",
            request.method,
            target.request_target(),
            request.version,
            target.authority(),
            env!("CARGO_PKG_VERSION"),
        )
        .into_bytes();
        let mut add = |name: &str, value: &[u8]| {
            message.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        };
        if request.version == "HTTP/1.1" {
            add("Connection", connection.as_bytes());
        }
        if target.has_same_origin(&self.origin) {
            for (name, value) in &self.headers {
                add(name.as_str(), value.as_bytes());
            }
            let authorization = self.origin.authorization();
            if let Some(value) = authorization.filter(|_| !self.headers.contains_key("authorization")) {
                add("Authorization", value.as_bytes());
            }
        }
        for (name, value) in &request.headers {
            add(name, value.as_bytes());
        }
        message.extend(b"\r\n");
        message
    }
}

async fn connect_tcp(target: &TargetUrl) -> Result<TcpStream, RequestFault> {
    let failed = |source| RequestFault::Connect { to: quote_for_report(&target.authority()), source };
    let stream = TcpStream::connect((target.host(), target.port())).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}
