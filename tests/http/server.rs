//! A server for test files, and the files of most tests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::{Arc, LazyLock, RwLock};

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, Version};
use axum::routing::{get, post};
use axum::{Extension, Router};
use chrono::{DateTime, Utc};
use discovery::representation::Representation;
use fixtures::{Architecture, Era};
use isogen::{Archive, BaseImage, Edits, Encoding, Extent, Plan, Segment, Source};
use kindling::http::{BodyMode, Certificate, ListenAddr, Listener, Peer, ServedFile, ServerLimits};
use tokio::runtime::Runtime;

use crate::connection::RawConnection;
use crate::support::{Scratch, fixture};

/// `Last-Modified` of all files, unless a test sets another one.
pub(crate) const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
pub(crate) const ETAG: &str = "\"image-1\"";
pub(crate) const MEDIA_TYPE: &str = "application/octet-stream";

/// The modes in which base bytes are sent.
pub(crate) const MODES: [&str; 2] = ["mapped", "read"];

type SharedRepresentations = Arc<RwLock<HashMap<String, ServedFile>>>;

/// A server on its own port. `/mapped/{name}` and `/read/{name}` serve a file in one of the two modes, and
/// `/fit/{name}` in the mode that fits the connection.
pub(crate) struct ContentServer {
    pub(crate) address: SocketAddr,
    pub(crate) contents: SharedRepresentations,
    runtime: Option<Runtime>,
}

impl ContentServer {
    pub(crate) fn start(workers: usize) -> Self {
        Self::start_with_limits(
            workers,
            ServerLimits { head_bytes: 16 << 10, ..ServerLimits::default() },
            None,
        )
    }

    /// Starts a server that copies all bytes.
    pub(crate) fn start_without_zero_copy(workers: usize) -> Self {
        Self::start_on(
            workers,
            kindling::http::Server::new(ServerLimits::default()).without_zero_copy(),
            None,
        )
    }

    /// Starts a server with other limits, and optionally with a certificate.
    pub(crate) fn start_with_limits(
        workers: usize,
        limits: ServerLimits,
        certificate: Option<&Certificate>,
    ) -> Self {
        Self::start_on(workers, kindling::http::Server::new(limits), certificate)
    }

    fn start_on(workers: usize, server: kindling::http::Server, certificate: Option<&Certificate>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        let listener = runtime.block_on(Listener::bind_tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let ListenAddr::Address(address) = *listener.addr() else { panic!("{listener}") };
        let listener = match certificate {
            Some(certificate) => listener.with_tls(certificate),
            None => listener,
        };
        let contents = SharedRepresentations::default();
        let router =
            Router::new().route("/{mode}/{name}", get(answer_with_mode)).with_state(Arc::clone(&contents));
        let router =
            router.route("/client", get(connection_info)).route("/echo", post(async |body: Bytes| body));
        runtime.spawn(async move {
            server.serve(listener, router, std::future::pending()).await;
        });
        Self { address, contents, runtime: Some(runtime) }
    }

    pub(crate) fn put(&self, name: &str, content: ServedFile) {
        self.contents.write().unwrap().insert(name.to_owned(), content);
    }

    pub(crate) fn connect(&self) -> RawConnection {
        RawConnection::new(self.address)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for ContentServer {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn answer_with_mode(
    State(contents): State<SharedRepresentations>,
    Path((mode, name)): Path<(String, String)>,
    (method, version, of_connection): (Method, Version, BodyMode),
    headers: HeaderMap,
) -> Response<Body> {
    let content = contents.read().unwrap().get(&name).cloned();
    let Some(content) = content else {
        return Response::builder().status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
    };
    match mode.as_str() {
        "mapped" => content.respond(&method, &headers, version),
        "fit" => content.respond_with_mode(of_connection, &method, &headers, version),
        _ => content.respond_with_mode(BodyMode::Read, &method, &headers, version),
    }
}

/// Returns the server's information about a connection.
async fn connection_info(Extension(peer): Extension<Peer>, mode: BodyMode) -> String {
    format!("{peer} {:?} {mode:?}", peer.transport)
}

/// Returns a file with default metadata.
pub(crate) fn representation(plan: Plan) -> ServedFile {
    representation_with_tag(plan, ETAG, DateTime::parse_from_rfc2822(MODIFIED).unwrap().with_timezone(&Utc))
}

/// Returns a file with the given entity tag and time of change.
pub(crate) fn representation_with_tag(plan: Plan, etag: &str, changed_at: DateTime<Utc>) -> ServedFile {
    let name = Some("image.iso".to_owned());
    Representation::new(Arc::new(plan), etag.to_owned(), changed_at, MEDIA_TYPE, name).unwrap().into()
}

/// Bytes without zeros and without repetition within pages.
pub(crate) fn bytes_without_repetition(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&(state | 0x0101_0101_0101_0101).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns a file without edits, with default metadata.
pub(crate) fn representation_of_file(path: &FilePath) -> ServedFile {
    representation(Plan::from_source(Arc::new(Source::open(path).unwrap())))
}

/// The files of most tests, with their bytes.
pub(crate) struct SharedServer {
    pub(crate) server: ContentServer,
    pub(crate) bytes: HashMap<&'static str, Vec<u8>>,
    _scratch: Scratch,
}

impl SharedServer {
    fn start() -> Self {
        let scratch = Scratch::new();
        let server = ContentServer::start(2);
        let base =
            Arc::new(Source::open(scratch.write("base", bytes_without_repetition(2_500_000))).unwrap());
        let memory = Source::from_bytes("memory", bytes_without_repetition(500_000));
        let extent = |offset, len| Segment::Base(Extent::new(offset, len).unwrap());
        let layered = [
            extent(1000, 700_000),
            Segment::Bytes(Bytes::from(bytes_without_repetition(5000))),
            Segment::Zero(300_000),
            extent(1, 1_500_000),
            Segment::Zero(1),
            extent(2_400_000, 100_000),
            Segment::Bytes(Bytes::from_static(b"end")),
        ];
        let mut archive = Archive::new();
        archive.insert("config.ign", crate::support::CONFIG);
        let edits = Edits::new().archive(archive.pack(Encoding::Gzip).unwrap());
        let fixture = scratch.write("image.iso", &fixture(Architecture::X86_64, Era::E2024_12).bytes);
        let fixture = BaseImage::open(fixture).unwrap();
        let minimal = edits.clone().minimal(Some("http://127.0.0.1/rootfs.img"));
        let plans = [
            ("plain", Plan::from_source(Arc::clone(&base))),
            ("layered", Plan::new(Arc::clone(&base), layered)),
            ("small", Plan::new(Arc::clone(&base), [extent(7, 1000)])),
            ("empty", Plan::new(base, [])),
            ("memory", Plan::from_source(Arc::new(memory))),
            ("full", fixture.plan(&edits).unwrap()),
            ("minimal", fixture.plan(&minimal).unwrap()),
        ];
        let mut bytes = HashMap::new();
        for (name, plan) in plans {
            bytes.insert(name, plan.read_all(100 << 20).unwrap());
            server.put(name, representation(plan));
        }
        Self { server, bytes, _scratch: scratch }
    }
}

/// Returns the server for tests that change no file.
pub(crate) fn shared_server() -> &'static SharedServer {
    static SHARED_SERVER: LazyLock<SharedServer> = LazyLock::new(SharedServer::start);
    &SHARED_SERVER
}
