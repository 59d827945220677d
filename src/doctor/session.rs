//! Requests to a server, each within its time, and no more of them than the server is worth.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ProtocolVersion, SupportedProtocolVersion};

use super::certificate::{Shown, Trust};
use super::fault::Fault;
use super::report::quoted;
use super::target::Target;
use super::wire::{Answer, Request, Wire};
use super::{DoctorError, Options};

/// After so many requests that took too long, no more are sent: all together end in bounded time.
const MAX_SLOW: u32 = 3;
/// The versions of TLS that clients have.
pub(super) const BOTH: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
/// The one that older clients have.
pub(super) const OLDER: [&SupportedProtocolVersion; 1] = [&TLS12];

/// What all requests share.
pub(super) struct Session {
    /// The server that may know the headers.
    origin: Target,
    headers: HeaderMap,
    trust: Trust,
    takes_any_certificate: bool,
    timeout: Duration,
    slow: AtomicU32,
}

impl Session {
    pub(super) fn new(origin: &Target, options: &Options) -> Result<Self, DoctorError> {
        Ok(Self {
            origin: origin.clone(),
            headers: options.headers.clone(),
            trust: Trust::new(options.ca_file.as_deref())?,
            takes_any_certificate: options.dangerously_any_certificate,
            timeout: options.timeout,
            slow: AtomicU32::new(0),
        })
    }

    pub(super) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn exchange(&self, target: &Target, request: &Request) -> Result<Answer, Fault> {
        self.within(async {
            let mut wire = self.open(target).await?;
            wire.exchange(request, &self.text(target, request, "close")).await
        })
        .await
    }

    /// Sends requests on one connection, one after the other, and gives the answers up to the first that fails, and why.
    pub(super) async fn several(
        &self,
        target: &Target,
        requests: &[Request],
    ) -> Result<(Vec<Answer>, Option<Fault>), Fault> {
        self.within(async {
            let mut wire = self.open(target).await?;
            let mut answers = Vec::new();
            for request in requests {
                match wire.exchange(request, &self.text(target, request, "keep-alive")).await {
                    Ok(answer) => answers.push(answer),
                    Err(fault) => return Ok((answers, Some(fault))),
                }
            }
            Ok((answers, None))
        })
        .await
    }

    /// Sends a HEAD, and says whether the answer has a body that it should not have.
    pub(super) async fn head(&self, target: &Target) -> Result<(Answer, bool), Fault> {
        self.within(async {
            let request = Request::new("HEAD", 0);
            let mut wire = self.open(target).await?;
            let answer = wire.exchange(&request, &self.text(target, &request, "close")).await?;
            Ok((answer, wire.is_surplus().await))
        })
        .await
    }

    /// Lets a server show its certificate, to a client of some versions of TLS. No request is sent.
    pub(super) async fn look(
        &self,
        target: &Target,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Shown, Fault> {
        self.within(async { Ok(self.secure(target, versions).await?.1) }).await
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        if self.slow.load(Ordering::Relaxed) >= MAX_SLOW {
            return Err(Fault::Abandoned);
        }
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| {
            self.slow.fetch_add(1, Ordering::Relaxed);
            Err(Fault::Slow { after: self.timeout })
        })
    }

    async fn open(&self, target: &Target) -> Result<Wire, Fault> {
        if !target.is_https() {
            return Ok(Wire::new(connect(target).await?));
        }
        let (wire, shown) = self.secure(target, &BOTH).await?;
        match self.takes_any_certificate || self.trust.is_trusted(&shown, target.host()) {
            true => Ok(wire),
            false => Err(Fault::Untrusted),
        }
    }

    async fn secure(
        &self,
        target: &Target,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<(Wire, Shown), Fault> {
        let failed = |reason: String| Fault::Tls { reason: quoted(&reason) };
        let recorder = self.trust.recorder();
        let config = self.trust.config(versions, &recorder).map_err(|error| failed(error.to_string()))?;
        let name =
            ServerName::try_from(target.host().to_owned()).map_err(|error| failed(error.to_string()))?;
        let stream = connect(target).await?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.map_err(|error| failed(error.to_string()))?;
        let (_, connection) = stream.get_ref();
        let shown = Shown {
            chain: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .cloned()
                .map(|it| it.into_owned())
                .collect(),
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
                Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
                _ => "TLS",
            },
            scheme: recorder.scheme(),
        };
        Ok((Wire::new(stream), shown))
    }

    /// A request as it goes over the wire.
    fn text(&self, target: &Target, request: &Request, connection: &str) -> String {
        let mut text = format!(
            "{} {} {}\r\nHost: {}\r\nUser-Agent: kindling/{} (doctor)\r\nAccept: */*\r\n",
            request.method,
            target.request_target(),
            request.version,
            target.authority(),
            env!("CARGO_PKG_VERSION"),
        );
        if request.version == "HTTP/1.1" {
            // Writing to a text does not fail.
            let _ = write!(text, "Connection: {connection}\r\n");
        }
        if target.has_origin_of(&self.origin) {
            for (name, value) in &self.headers {
                let _ = write!(text, "{name}: {}\r\n", value.to_str().unwrap_or_default());
            }
            let authorization = self.origin.authorization();
            if let Some(value) = authorization.filter(|_| !self.headers.contains_key("authorization")) {
                let _ = write!(text, "Authorization: {value}\r\n");
            }
        }
        for (name, value) in &request.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        text
    }
}

async fn connect(target: &Target) -> Result<TcpStream, Fault> {
    let failed = |source| Fault::Connect { to: quoted(&target.authority()), source };
    let stream = TcpStream::connect((target.host(), target.port())).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}
