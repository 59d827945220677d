//! Every registered route with every kind of token, on own, neighbouring and foreign resources, against the access that the
//! route declares.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use ignition::discovery::HttpUrl;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use super::app::routes;
use super::images::{Embedded, ImageServer};
use crate::images::Catalogue;
use crate::images::library::{Library, LibrarySettings};
use crate::inventory::auth::{AuthKind, IdSource, KeyTexts, LocalKeys, Policy, RouteAccess};
use crate::inventory::files::FileStore;
use crate::inventory::id::{ClusterId, InfraEnvId};
use crate::inventory::store::SqlStore;
use crate::inventory::{Inventory, Settings, operations};

const API: &str = "/api/assisted-install/v2";
const IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94", "url": "http://127.0.0.1:9/x.iso"}]"#;
const RELEASES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"}]"#;

/// A service with these resources. `own` and `neighbour` belong to `cluster`; `late` does not, but one of its hosts was bound to
/// `cluster` after all tokens were made.
struct Site {
    app: Router,
    table: Vec<RouteAccess>,
    images: ImageServer,
    keys: LocalKeys,
    cluster: String,
    foreign_cluster: String,
    own: String,
    neighbour: String,
    late: String,
    foreign: String,
    _directory: TempDir,
}

/// The host that exists in `own`, `neighbour`, `late` (bound there) and `foreign`, and another one of `late`.
const HOST: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
const UNBOUND: &str = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";
/// A host of `foreign` alone.
const FOREIGN_HOST: &str = "6ba7b812-9dad-11d1-80b4-00c04fd430c8";

/// What a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    User,
    /// The token of `own` or of `cluster`, where tokens of a kind are.
    InfraEnv(AuthKind),
    Cluster(AuthKind),
}

const KINDS: [AuthKind; 6] =
    [AuthKind::User, AuthKind::Agent, AuthKind::Url, AuthKind::Image, AuthKind::ImageUrl, AuthKind::Watcher];

impl Token {
    fn all() -> Vec<Self> {
        let scoped = KINDS.into_iter().flat_map(|kind| [Self::InfraEnv(kind), Self::Cluster(kind)]);
        [Self::None, Self::User].into_iter().chain(scoped).collect()
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The operation began.
    Allowed,
    Unauthenticated,
    OutOfScope,
}

impl Site {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let keys = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
        let store = SqlStore::open_file(&directory.path().join("test.db")).await.unwrap();
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("url", "http://127.0.0.1").unwrap();
        let settings = Settings::new(url.clone(), url.clone());
        let catalogue = Catalogue::parse(IMAGES).unwrap().with_release_images(RELEASES).unwrap();
        let library = Library::open(LibrarySettings::new(directory.path().join("images")), []).unwrap();
        let os_images = catalogue.os_images().to_vec();
        let policy = Policy::local(keys.clone());
        let inventory = Inventory::new(Arc::new(store), files, catalogue, settings, policy);
        let images = ImageServer::new(os_images, library, Arc::new(Embedded::new(inventory.clone())), url);
        let (app, table) = routes(&inventory, Some(&images)).into_parts();
        let mut site = Self {
            app,
            table,
            images,
            keys,
            cluster: String::new(),
            foreign_cluster: String::new(),
            own: String::new(),
            neighbour: String::new(),
            late: String::new(),
            foreign: String::new(),
            _directory: directory,
        };
        site.fill().await;
        site
    }

    async fn fill(&mut self) {
        self.cluster = self.made("clusters", json!({"name": "own"})).await;
        self.foreign_cluster = self.made("clusters", json!({"name": "foreign"})).await;
        let bound = json!({"cluster_id": self.cluster});
        self.own = self.made("infra-envs", bound.clone()).await;
        self.neighbour = self.made("infra-envs", bound).await;
        self.late = self.made("infra-envs", json!({})).await;
        self.foreign = self.made("infra-envs", json!({"cluster_id": self.foreign_cluster})).await;
        for (infra_env, hosts) in [
            (&self.own, &[HOST][..]),
            (&self.neighbour, &[HOST]),
            (&self.late, &[HOST, UNBOUND]),
            (&self.foreign, &[HOST, FOREIGN_HOST]),
        ] {
            for host in hosts {
                let path = format!("{API}/infra-envs/{infra_env}/hosts");
                self.as_agent(infra_env, &path, &json!({"host_id": host}), 201).await;
            }
        }
        // A host can be bound when it has said what it has.
        let reply = json!({
            "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": report().to_string(), "error": "",
        });
        let path = format!("{API}/infra-envs/{}/hosts/{HOST}/instructions", self.late);
        self.as_agent(&self.late, &path, &reply, 204).await;
        let bind = format!("{API}/infra-envs/{}/hosts/{HOST}/actions/bind", self.late);
        self.as_user(&bind, &json!({"cluster_id": self.cluster}), 200).await;
    }

    async fn as_agent(&self, infra_env: &str, path: &str, body: &Value, expected: u16) {
        let token = self.keys.infra_env_token(infra_env.parse().unwrap());
        let request = Request::post(path)
            .header("X-Secret-Key", token.reveal())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()));
        self.send(request.unwrap(), expected).await;
    }

    async fn made(&self, what: &str, more: Value) -> String {
        let mut body = json!({
            "name": "test", "openshift_version": "4.18", "base_dns_domain": "example.com",
            "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if what == "infra-envs" {
            body.as_object_mut().unwrap().remove("base_dns_domain");
        }
        let made = self.as_user(&format!("{API}/{what}"), &body, 201).await;
        made["id"].as_str().unwrap().to_owned()
    }

    async fn as_user(&self, path: &str, body: &Value, expected: u16) -> Value {
        let request = Request::post(path)
            .header(header::AUTHORIZATION, self.keys.user_token(None).reveal())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()));
        self.send(request.unwrap(), expected).await
    }

    async fn send(&self, request: Request<Body>, expected: u16) -> Value {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        assert_eq!(status.as_u16(), expected, "{}", String::from_utf8_lossy(&body));
        if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() }
    }

    fn infra_env_token(&self) -> String {
        let own: InfraEnvId = self.own.parse().unwrap();
        self.keys.infra_env_token(own).reveal().to_owned()
    }

    fn cluster_token(&self) -> String {
        let cluster: ClusterId = self.cluster.parse().unwrap();
        self.keys.cluster_token(cluster).reveal().to_owned()
    }

    /// The status and the body of the answer to a request with a token.
    async fn ask(&self, probe: &Probe, token: Token) -> (u16, String) {
        let (kind, text) = match token {
            Token::None => (None, String::new()),
            Token::User => (Some(AuthKind::User), self.keys.user_token(None).reveal().to_owned()),
            Token::InfraEnv(kind) => (Some(kind), self.infra_env_token()),
            Token::Cluster(kind) => (Some(kind), self.cluster_token()),
        };
        let mut query = probe.query.clone();
        let mut request = Request::builder().method(&probe.method);
        match kind {
            Some(kind @ (AuthKind::Url | AuthKind::ImageUrl)) => {
                query.push(format!("{}={text}", kind.place()))
            }
            Some(kind) => request = request.header(kind.place(), &text),
            None => {}
        }
        // No route reads ids from headers.
        for name in ["infra_env_id", "cluster_id", "host_id"] {
            request = request.header(name, &self.own);
        }
        let request = request.uri(format!("{}?{}", probe.path, query.join("&")));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(probe.body.clone())).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a request with a token, and says what became of it.
    async fn probe(&self, probe: &Probe, token: Token) -> Outcome {
        let (status, body) = self.ask(probe, token).await;
        assert!(![405, 500].contains(&status), "{probe:?} with {token:?}: {status} {body}");
        assert!(!body.contains("was not found\""), "the route does not exist: {probe:?} {body}");
        match status {
            401 => Outcome::Unauthenticated,
            404 if body.contains("Object Not Found") => Outcome::OutOfScope,
            _ => Outcome::Allowed,
        }
    }

    /// The requests that a route is tried with, each with the tokens that reach what it names: of `own` as a URL's and as an
    /// agent's, of `cluster` as a URL's and as an agent's.
    fn probes(&self, route: &RouteAccess) -> Vec<(Probe, Reached)> {
        let Self { cluster, foreign_cluster, own, neighbour, late, foreign, .. } = self;
        let new = |ids: &[(&str, &str)]| Probe::new(route, ids);
        let shape: Vec<&str> = route.ids.iter().map(IdSource::name).collect();
        match shape[..] {
            [] => vec![(new(&[]), [false; 4])],
            ["infra_env_id"] | ["id"] => vec![
                (new(&[(shape[0], own)]), [true, true, false, true]),
                (new(&[(shape[0], neighbour)]), [false, false, false, true]),
                (new(&[(shape[0], late)]), [false; 4]),
                (new(&[(shape[0], foreign)]), [false; 4]),
                (new(&[(shape[0], &Uuid::new_v4().to_string())]), [false; 4]),
            ],
            ["infra_env_id", "host_id"] => {
                let of = |infra_env, host| new(&[("infra_env_id", infra_env), ("host_id", host)]);
                vec![
                    (of(own, HOST), [true, true, false, true]),
                    (of(neighbour, HOST), [false, true, false, true]),
                    (of(late, HOST), [false, true, false, true]),
                    (of(late, UNBOUND), [false; 4]),
                    (of(foreign, HOST), [false; 4]),
                    (of(foreign, FOREIGN_HOST), [false; 4]),
                ]
            }
            ["cluster_id"] => vec![
                (new(&[("cluster_id", cluster)]), [false, true, true, true]),
                (new(&[("cluster_id", foreign_cluster)]), [false; 4]),
                (new(&[("cluster_id", &Uuid::new_v4().to_string())]), [false; 4]),
            ],
            ["cluster_id", "host_id"] => {
                let of = |cluster, host| new(&[("cluster_id", cluster), ("host_id", host)]);
                vec![
                    (new(&[("cluster_id", cluster)]), [false, true, true, true]),
                    (of(cluster, HOST), [false, true, true, true]),
                    (of(cluster, UNBOUND), [false; 4]),
                    (of(cluster, FOREIGN_HOST), [false; 4]),
                    (of(foreign_cluster, HOST), [false; 4]),
                    // A parameter of the path comes before one of the query.
                    (of(foreign_cluster, HOST).asking("cluster_id", cluster), [false; 4]),
                    (of(cluster, HOST).asking("cluster_id", foreign_cluster), [false, true, true, true]),
                ]
            }
            ["cluster_id", "host_id", "infra_env_id"] => {
                let of = |cluster, infra_env, host| {
                    new(&[("cluster_id", cluster), ("infra_env_id", infra_env), ("host_id", host)])
                };
                vec![
                    (new(&[("cluster_id", cluster)]), [false, true, true, true]),
                    (of(cluster, own, HOST), [false, true, false, true]),
                    (of(cluster, late, HOST), [false, true, false, true]),
                    (of(cluster, late, UNBOUND), [false; 4]),
                    (of(cluster, foreign, FOREIGN_HOST), [false; 4]),
                    (of(foreign_cluster, own, HOST), [false; 4]),
                    (new(&[("cluster_id", cluster), ("host_id", FOREIGN_HOST)]), [false; 4]),
                ]
            }
            ["cluster_id", "infra_env_id", "host_id", "host_ids"] => self.events(route),
            ["infra_env_id", "cluster_id", "host_id"] => {
                let of = |ids: Value| Probe { body: event(ids), ..new(&[]) };
                let all = json!({"cluster_id": cluster, "infra_env_id": own, "host_id": HOST});
                vec![
                    (of(json!({})), [false; 4]),
                    (of(all), [false, true, false, true]),
                    (of(json!({"cluster_id": cluster})), [false, true, true, true]),
                    (of(json!({"cluster_id": cluster, "host_id": FOREIGN_HOST})), [false; 4]),
                    (of(json!({"cluster_id": cluster, "infra_env_id": foreign})), [false; 4]),
                    (of(json!({"cluster_id": foreign_cluster, "infra_env_id": own})), [false; 4]),
                    (of(json!({"infra_env_id": late, "host_id": UNBOUND})), [false; 4]),
                ]
            }
            ["token"] => vec![(new(&[("token", &self.infra_env_token())]), [true, true, false, true])],
            ["who", "who"] => vec![
                (new(&[("who", own)]), [true, true, false, true]),
                (new(&[("who", foreign)]), [false; 4]),
                (new(&[("who", neighbour)]), [false, false, false, true]),
            ],
            _ => panic!("{route}: no probes for these ids"),
        }
    }

    fn events(&self, route: &RouteAccess) -> Vec<(Probe, Reached)> {
        let Self { cluster, foreign_cluster, own, foreign, .. } = self;
        let new = |ids: &[(&str, &str)]| Probe::new(route, ids);
        let two = format!("{HOST},{FOREIGN_HOST}");
        vec![
            (new(&[]), [false; 4]),
            (new(&[("infra_env_id", own)]), [true, true, false, true]),
            (new(&[("infra_env_id", foreign)]), [false; 4]),
            (new(&[("cluster_id", cluster)]), [false, true, true, true]),
            (new(&[("cluster_id", foreign_cluster)]), [false; 4]),
            (new(&[("host_id", HOST)]), [true, false, false, false]),
            (new(&[("host_ids", HOST)]), [true, false, false, false]),
            (new(&[("host_id", FOREIGN_HOST)]), [false; 4]),
            (new(&[("host_ids", &two)]), [false; 4]),
            (new(&[("infra_env_id", own), ("host_ids", &two)]), [false, true, false, true]),
            (new(&[("infra_env_id", own), ("cluster_id", cluster)]), [false, true, false, true]),
            (new(&[("infra_env_id", foreign), ("cluster_id", cluster)]), [false; 4]),
            (new(&[("cluster_id", cluster), ("host_id", HOST)]), [false, true, true, true]),
            (new(&[("cluster_id", cluster), ("host_id", FOREIGN_HOST)]), [false; 4]),
        ]
    }
}

/// The inventory report of a host that has enough of everything.
fn report() -> Value {
    json!({
        "hostname": "late",
        "cpu": {"count": 8, "architecture": "x86_64"},
        "memory": {"physical_bytes": 34_359_738_368_i64, "usable_bytes": 34_359_738_368_i64},
        "disks": [{
            "id": "/dev/sda", "path": "/dev/sda", "name": "sda", "drive_type": "HDD", "size_bytes": 128_849_018_880_i64,
            "bootable": true, "installation_eligibility": {"eligible": true, "not_eligible_reasons": []}
        }],
        "interfaces": [{
            "name": "eth0", "mac_address": "52:54:00:00:00:01", "has_carrier": true,
            "ipv4_addresses": ["192.168.1.11/24"], "ipv6_addresses": []
        }],
        "boot": {"current_boot_mode": "bios"},
    })
}

fn event(ids: Value) -> String {
    let mut event = json!({"name": "test", "message": "test", "severity": "info", "category": "user", "event_time": "2026-01-01T00:00:00.000Z"});
    event.as_object_mut().unwrap().extend(ids.as_object().unwrap().clone());
    event.to_string()
}

/// Whether a request names only what these tokens give access to: of `own` in a URL, of `own` in an agent's header, of `cluster` in a
/// URL, of `cluster` in an agent's header.
type Reached = [bool; 4];

/// A request without its token.
#[derive(Clone, Debug)]
struct Probe {
    method: Method,
    path: String,
    query: Vec<String>,
    body: String,
}

impl Probe {
    /// A request of a route, with ids where the route reads them.
    fn new(route: &RouteAccess, ids: &[(&str, &str)]) -> Self {
        const OTHERS: [(&str, &str); 9] = [
            ("openshift_version", "4.18"),
            ("cpu_architecture", "x86_64"),
            ("version", "4.18"),
            ("architecture", "x86_64"),
            ("file", "full.iso"),
            ("machine", "52:54:00:00:00:01"),
            ("validation_id", "container-images-available"),
            ("operator_name", "lvm"),
            ("id", "bundle"),
        ];
        let mut path = route.path.clone();
        let mut query: Vec<String> =
            ["type=full-iso", "version=4.18", "file_name=discovery.ign", "logs_type=host"]
                .map(String::from)
                .into();
        for (name, id) in ids {
            let parameter = format!("{{{name}}}");
            if path.contains(&parameter) {
                path = path.replace(&parameter, id);
            } else {
                query.push(format!("{name}={id}"));
            }
        }
        for (name, value) in OTHERS {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        assert!(!path.contains('{'), "{route}: {path}");
        Self { method: route.method.clone(), path, query, body: "{}".to_owned() }
    }

    /// The same with another parameter in its query.
    fn asking(mut self, name: &str, value: &str) -> Self {
        self.query.push(format!("{name}={value}"));
        self
    }
}

impl IdSource {
    fn name(&self) -> &'static str {
        match self {
            Self::Path(name) | Self::PathToken(name, _) | Self::Query(name) | Self::Body(name) => name,
        }
    }
}

/// What has to become of a request with a token.
fn expected(route: &RouteAccess, reached: Reached, token: Token) -> Outcome {
    let [infra_env_url, infra_env_agent, cluster_url, cluster_agent] = reached;
    let (kind, is_reached) = match token {
        _ if route.is_open() => return Outcome::Allowed,
        // The path itself may have a valid token.
        _ if route.ids.contains(&IdSource::PathToken("token", AuthKind::Url)) => {
            return Outcome::Allowed;
        }
        Token::None => return Outcome::Unauthenticated,
        Token::User => (AuthKind::User, true),
        Token::InfraEnv(kind @ AuthKind::Url) => (kind, infra_env_url),
        Token::InfraEnv(kind @ AuthKind::Agent) => (kind, infra_env_agent),
        Token::Cluster(kind @ AuthKind::Url) => (kind, cluster_url),
        Token::Cluster(kind @ AuthKind::Agent) => (kind, cluster_agent),
        // Under this policy, no other place takes a token that is not a user's.
        Token::InfraEnv(_) | Token::Cluster(_) => return Outcome::Unauthenticated,
    };
    match (route.tokens.contains(&kind), is_reached) {
        (true, true) => Outcome::Allowed,
        // Whether an infra-env exists whose images a client may not have is not said either: there it is 401.
        (true, false) if is_image(route) => Outcome::Unauthenticated,
        (true, false) => Outcome::OutOfScope,
        (false, _) => Outcome::Unauthenticated,
    }
}

/// Whether a route serves images. No cluster token gives access to images.
fn is_image(route: &RouteAccess) -> bool {
    !route.path.starts_with("/api/")
}

/// Parameters that no route, or not this one, reads as ids.
fn undeclared(site: &Site, route: &RouteAccess) -> Vec<String> {
    let declared: Vec<_> = route.ids.iter().map(IdSource::name).collect();
    let all = [
        ("infra_env_id", &*site.own),
        ("infra_env_id", &site.foreign),
        ("cluster_id", &site.cluster),
        ("cluster_id", &site.foreign_cluster),
        ("host_id", HOST),
        ("host_ids", HOST),
        ("host_ids", FOREIGN_HOST),
        ("id", &site.own),
        ("who", &site.own),
        ("Infra_Env_Id", &site.own),
        ("host_id", "nothing"),
    ];
    let undeclared = all.into_iter().filter(|(name, _)| !declared.contains(name));
    undeclared.map(|(name, id)| format!("{name}={id}")).collect()
}

async fn walk(tokens: &[Token]) {
    let site = Site::new().await;
    let mut asked = 0;
    for route in &site.table {
        for (probe, reached) in site.probes(route) {
            for token in tokens {
                let expected = expected(route, reached, *token);
                let found = site.probe(&probe, *token).await;
                assert_eq!(found, expected, "{route} {probe:?} with {token:?}");
                for more in undeclared(&site, route) {
                    let mut probe = probe.clone();
                    probe.query.push(more);
                    let found = site.probe(&probe, *token).await;
                    assert_eq!(found, expected, "{route} {probe:?} with {token:?}");
                    asked += 1;
                }
                asked += 1;
            }
        }
    }
    println!("{asked} requests on {} routes", site.table.len());
    assert!(site.table.len() > 100, "{}", site.table.len());
}

#[tokio::test]
async fn tokens_reach_what_the_table_says() {
    let tokens: Vec<_> = Token::all().into_iter().filter(|token| *token != Token::User).collect();
    walk(&tokens).await;
}

/// Requests of a route, each with one id that is not a UUID.
fn unreadable(route: &RouteAccess) -> Vec<Probe> {
    let in_path = |id: &&IdSource| matches!(id, IdSource::Path(_));
    let declared = route.ids.iter().filter(|id| in_path(id) || matches!(id, IdSource::Query(_)));
    let with = |id: &IdSource, bad: &'static str| {
        let others = route.ids.iter().filter(in_path).filter(|other| other.name() != id.name());
        let mut ids: Vec<_> = others.map(|other| (other.name(), HOST)).collect();
        ids.push((id.name(), bad));
        Probe::new(route, &ids)
    };
    declared.flat_map(|id| ["nothing", "*", "%00"].map(|bad| with(id, bad))).collect()
}

#[tokio::test]
async fn rejects_ids_that_are_not_uuids() {
    let site = Site::new().await;
    let mut asked = 0;
    for route in site.table.iter().filter(|route| route.path.starts_with("/api/")) {
        let tokens: Vec<_> = route.tokens.iter().filter_map(|kind| valid(*kind)).collect();
        let probes = unreadable(route);
        for (probe, token) in probes.iter().flat_map(|probe| tokens.iter().map(move |token| (probe, *token)))
        {
            let (status, body) = site.ask(probe, token).await;
            assert_eq!(status, 400, "{route} {probe:?} {token:?}: {body}");
            assert!(body.contains("must be of type uuid"), "{route} {probe:?}: {body}");
            asked += 1;
        }
    }
    assert!(asked > 100, "{asked}");
}

/// A token that this policy takes where those of a kind are.
fn valid(kind: AuthKind) -> Option<Token> {
    match kind {
        AuthKind::User => Some(Token::User),
        AuthKind::Agent | AuthKind::Url => Some(Token::InfraEnv(kind)),
        AuthKind::Image | AuthKind::ImageUrl | AuthKind::Watcher => None,
    }
}

/// All parameters of paths that are ids of resources are declared as such, and nothing else is.
#[tokio::test]
async fn routes_declare_the_ids_in_their_paths() {
    let site = Site::new().await;
    for route in &site.table {
        for name in ["infra_env_id", "cluster_id", "host_id"] {
            let is_declared = route.ids.contains(&IdSource::Path(name));
            assert_eq!(route.path.contains(&format!("{{{name}}}")), is_declared, "{route}");
        }
    }
}

/// The paths that a router has, as axum shows them for debugging.
fn registered<S>(router: &Router<S>) -> BTreeSet<String> {
    let shown = format!("{router:?}");
    let (_, paths) = shown.split_once("paths: {").unwrap();
    let (paths, _) = paths.split_once("} }").unwrap();
    let texts = paths.split('"').skip(1).step_by(2);
    texts.filter(|path| !path.contains("__private__")).map(str::to_owned).collect()
}

fn paths(table: &[RouteAccess]) -> BTreeSet<String> {
    table.iter().map(|route| route.path.clone()).collect()
}

#[tokio::test]
async fn every_registered_route_is_in_the_table() {
    let raw: Router = Router::new()
        .route("/a/{b}", axum::routing::get(async || ()))
        .route("/c", axum::routing::get(async || ()));
    assert_eq!(registered(&raw), BTreeSet::from(["/a/{b}".to_owned(), "/c".to_owned()]));
    let images = Site::new().await.images;
    let api = operations();
    assert_eq!(registered(&Router::from(api.router)), paths(&api.access));
    for area in [super::page::routes(), super::health::image_routes(&images)] {
        let (router, table) = area.into_parts();
        assert_eq!(registered(&router), paths(&table));
    }
    let (router, table) = images.guarded_router().into_parts();
    assert_eq!(registered(&router), paths(&table));
}

/// `UPDATE_GOLDEN=1` writes the table.
#[tokio::test]
async fn the_documentation_has_the_table() {
    const MARK: &str =
        "| method | route | tokens | ids that the token is checked against |\n|---|---|---|---|\n";
    let site = Site::new().await;
    let mut table: Vec<_> = site.table.iter().collect();
    table.sort_by_key(|route| (&route.path, route.method.as_str()));
    let rows: String = table.into_iter().map(|route| format!("{route}\n")).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/auth.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(MARK).unwrap();
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let new = format!("{before}{MARK}{rows}{}", &rest[end..]);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, new).unwrap();
    } else {
        assert!(text == new, "docs/auth.md differs from the routes; UPDATE_GOLDEN=1 writes it");
    }
}

/// Apart from the others: a user deletes things.
#[tokio::test]
async fn user_tokens_reach_everything() {
    walk(&[Token::User]).await;
}
