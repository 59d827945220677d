//! Images over TLS, and the certificate of the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kindling::http::{Certificate, ServerLimits};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

use crate::server::{ContentServer, shared_server};
use crate::support::{CertificateAuthority, ProgramRun, Scratch, require_tool, write_pair};

/// A server with a certificate in two files.
pub(crate) struct TlsServer {
    pub(crate) server: ContentServer,
    authority: CertificateAuthority,
    certificate: Certificate,
    scratch: Scratch,
}

impl TlsServer {
    pub(crate) fn start() -> Self {
        let (scratch, authority) = (Scratch::new(), CertificateAuthority::new());
        scratch.write("ca.pem", &authority.pem);
        let (chain, key) = write_pair(&scratch, &authority.issue());
        let certificate = Certificate::open(chain, key).unwrap();
        let server = ContentServer::start_with_limits(2, ServerLimits::default(), Some(&certificate));
        for name in ["layered", "full"] {
            let content = shared_server().server.contents.read().unwrap()[name].clone();
            server.put(name, content);
        }
        Self { server, authority, certificate, scratch }
    }

    pub(crate) fn connect(
        &self,
        version: &'static SupportedProtocolVersion,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_protocol_versions(&[version]);
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(connection, TcpStream::connect(self.server.address).unwrap())
    }
}

type TlsClientStream = StreamOwned<ClientConnection, TcpStream>;

/// Requests a range. Returns its bytes and the status.
pub(crate) fn request_range(stream: &mut TlsClientStream, path: &str, range: &str) -> (u16, Vec<u8>) {
    let text = format!("GET {path} HTTP/1.1\r\nHost: test\r\nRange: bytes={range}\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

#[test]
fn tls_ranges_match_the_plan() {
    let secure = TlsServer::start();
    for version in [&TLS12, &TLS13] {
        let mut stream = secure.connect(version);
        for name in ["layered", "full"] {
            let bytes = &shared_server().bytes[name];
            for (start, len) in
                [(0, 1), (5, 65_024), (1, 65_535), (4096, 65_536), (700_000, 131_072), (999, 1_500_000)]
            {
                let (status, body) = request_range(
                    &mut stream,
                    &format!("/fit/{name}"),
                    &format!("{start}-{}", start + len - 1),
                );
                assert_eq!(status, 206);
                assert!(body == bytes[start..start + len], "{name} {start} {len}");
            }
            assert!(request_range(&mut stream, &format!("/fit/{name}"), "0-").1 == *bytes);
        }
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[test]
fn requests_carry_their_connection_info() {
    let secure = TlsServer::start();
    let mut stream = secure.connect(&TLS13);
    let address = stream.sock.local_addr().unwrap();
    let (_, text) = request_range(&mut stream, "/client", "");
    assert_eq!(String::from_utf8(text).unwrap(), format!("{address} Tls Read"));
    let mut connection = shared_server().server.connect();
    let text = String::from_utf8(connection.request_and_read("GET /client", "").body).unwrap();
    assert!(text.starts_with("127.0.0.1:") && text.ends_with(" Tcp Mapped"), "{text}");
}

#[test]
fn curl_downloads_over_tls() {
    if require_tool("curl").is_none() {
        return;
    }
    let secure = TlsServer::start();
    let url = format!("https://localhost:{}/fit/full", secure.server.address.port());
    let curl = |arguments: &str| {
        ProgramRun::new("curl", secure.scratch.folder())
            .args(["-q", "-sS", "--fail", "--noproxy", "*"])
            .args(arguments.split_whitespace().chain([url.as_str()]))
            .run()
    };
    let bytes = &shared_server().bytes["full"];
    assert!(curl("--cacert ca.pem").expect_success() == *bytes);
    assert!(
        curl("--cacert ca.pem --tls-max 1.2 -r 70000-200000").expect_success() == bytes[70_000..=200_000]
    );
    secure.scratch.write("partial", &bytes[..100_000]);
    curl("--cacert ca.pem -C - -o partial").expect_success();
    assert!(secure.scratch.read("partial") == *bytes);
    // curl accepts no other authority, and the port accepts only TLS.
    assert_eq!(curl("").status.code(), Some(60));
    let plain = url.replace("https", "http");
    let plain =
        ProgramRun::new("curl", secure.scratch.folder()).args(["-q", "-sS", "--noproxy", "*", &plain]).run();
    assert_ne!(plain.status.code(), Some(0));
}

#[test]
fn certificate_is_replaced_under_open_connections() {
    let secure = TlsServer::start();
    let mut before = secure.connect(&TLS13);
    let bytes = &shared_server().bytes["layered"];
    assert!(request_range(&mut before, "/fit/layered", "0-99").1 == bytes[..100]);
    let leaf = |stream: &TlsClientStream| stream.conn.peer_certificates().unwrap()[0].clone();
    let first = leaf(&before);
    let new = secure.authority.issue();
    let old = (secure.scratch.read("cert.pem"), secure.scratch.read("key.pem"));
    // Only half of the pair has been replaced.
    secure.scratch.write("cert.pem", &new.0);
    let error = secure.certificate.reload().unwrap_err().to_string();
    assert!(error.contains("does not match the first certificate"), "{error}");
    let mut between = secure.connect(&TLS13);
    assert!(request_range(&mut between, "/fit/layered", "0-99").1 == bytes[..100]);
    assert_eq!(leaf(&between), first);
    secure.scratch.write("key.pem", &new.1);
    secure.certificate.reload().unwrap();
    let mut after = secure.connect(&TLS13);
    assert!(request_range(&mut after, "/fit/layered", "0-99").1 == bytes[..100]);
    assert_ne!(leaf(&after), first);
    assert!(
        request_range(&mut before, "/fit/layered", "100-").1 == bytes[100..],
        "the open connection keeps its certificate"
    );
    assert_ne!(old.0, secure.scratch.read("cert.pem"));
}

#[test]
fn certificate_errors_are_reported() {
    let scratch = Scratch::new();
    let authority = CertificateAuthority::new();
    let (chain, key) = authority.issue();
    let other = authority.issue().1;
    let refused = |name: &str, chain: &str, key: &str| {
        let (chain, key) = write_pair(&scratch, &(chain.to_owned(), key.to_owned()));
        let error = Certificate::open(&chain, &key).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let text = format!("{error}: {source}").replace(&format!("{}/", scratch.folder().display()), "");
        assert!(!text.contains("BEGIN"), "{name}: {text}");
        text
    };
    for (name, given, expected) in [
        ("empty certificate", ("", &*key), "cert.pem contains no certificate"),
        ("key for certificate", (&*key, &*key), "cert.pem contains no certificate"),
        ("empty key", (&*chain, ""), "key.pem contains no unencrypted private key"),
        ("certificate for key", (&*chain, &*chain), "key.pem contains no unencrypted private key"),
        (
            "other key",
            (&*chain, &*other),
            "the private key in key.pem does not match the first certificate in cert.pem",
        ),
        ("cut", (&chain[..200], &*key), "cert.pem is not a PEM file"),
        ("no PEM", ("\u{0}\u{1}", &*key), "cert.pem contains no certificate"),
        (
            "nonsense",
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &*key),
            "the first certificate in cert.pem is invalid",
        ),
        (
            "nonsense for a key",
            (&*chain, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            "cannot use the private key in key.pem",
        ),
    ] {
        let text = refused(name, given.0, given.1);
        assert!(text.starts_with(expected), "{name}: {text}");
    }
    let text = refused("large", &"#".repeat(2 << 20), &key);
    assert!(text.contains("cannot read cert.pem: larger than 1048576 bytes"), "{text}");
    let missing = Certificate::open(Path::new("/nowhere/cert.pem"), "key.pem").unwrap_err();
    assert_eq!(missing.to_string(), "cannot read /nowhere/cert.pem");
}

/// Keys of all usual types, certificate chains, and files with both.
#[test]
fn certificates_are_accepted_in_several_formats() {
    let scratch = Scratch::new();
    let authority = CertificateAuthority::new();
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let chain = params.signed_by(&key, &authority.issuer).unwrap().pem() + &authority.pem;
        let both = scratch.write("both.pem", format!("a comment\n{}{chain}", key.serialize_pem()));
        Certificate::open(&both, &both).unwrap();
    }
    if require_tool("openssl").is_none() {
        return;
    }
    for options in ["rsa:2048", "ec -pkeyopt ec_paramgen_curve:secp384r1"] {
        let line = format!(
            "req -x509 -nodes -newkey {options} -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
        );
        ProgramRun::new("openssl", scratch.folder()).args(line.split(' ')).run().expect_success();
        Certificate::open(scratch.path("cert.pem"), scratch.path("key.pem")).unwrap();
        // The formats before PKCS #8.
        let kind = if options.starts_with("rsa") { "rsa -traditional" } else { "ec" };
        let line = format!("{kind} -in key.pem -out old.pem");
        ProgramRun::new("openssl", scratch.folder()).args(line.split(' ')).run().expect_success();
        Certificate::open(scratch.path("cert.pem"), scratch.path("old.pem")).unwrap();
    }
}

#[test]
fn slow_tls_handshake_is_timed_out() {
    let (scratch, authority) = (Scratch::new(), CertificateAuthority::new());
    let (chain, key) = write_pair(&scratch, &authority.issue());
    let certificate = Certificate::open(chain, key).unwrap();
    let limits = ServerLimits { handshake_time: Duration::from_millis(500), ..ServerLimits::default() };
    let server = ContentServer::start_with_limits(2, limits, Some(&certificate));
    // Nothing, the start of a record, and an invalid record.
    let starts: [&[u8]; 3] = [b"", b"\x16\x03\x01\x02", b"GET /client HTTP/1.1\r\nHost: test\r\n\r\n"];
    let mut connections = starts.map(|bytes| {
        let mut connection = server.connect();
        connection.write(bytes);
        connection
    });
    for connection in &mut connections {
        let (response, _) = connection.read_to_end();
        assert!(!response.starts_with(b"HTTP/"), "{response:?}");
    }
}
