//! Tests the access rules of every route. Each kind of token is sent to each registered route, with resources of the
//! token, resources of the same cluster, and foreign resources. The result must match the access that the route
//! declares.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, header};
use chrono::{TimeDelta, Utc};
use ignition::discovery::HttpUrl;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use super::app::routes;
use super::images::{EmbeddedInputs, ImageServer};
use crate::images::library::{Library, LibrarySettings};
use inventory::api::auth::{IdSource, RouteAccess};
use inventory::api::operations;
use inventory::auth::{AuthKind, KeyTexts, LocalKeys, Policy};
use inventory::catalogue::Catalogue;
use inventory::files::FileStore;
use inventory::id::{ClusterId, InfraEnvId};
use inventory::store::SqlStore;
use inventory::{Inventory, Settings};

const API: &str = "/api/assisted-install/v2";
const IMAGES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "418.94", "url": "http://127.0.0.1:9/x.iso"}]"#;
const RELEASES: &str = r#"[{"openshift_version": "4.18", "cpu_architecture": "x86_64", "version": "4.18.3", "url": "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"}]"#;

/// A service with infra-envs in two clusters. `own` and `neighbour` belong to `cluster`. `late` belongs to no cluster,
/// but one of its hosts was bound to `cluster` after all tokens were created. `foreign` belongs to `foreign_cluster`.
pub(super) struct AccessSite {
    app: Router,
    pub(super) table: Vec<RouteAccess>,
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

/// The id of a host in each of `own`, `neighbour`, `late` (where the host is bound) and `foreign`. `late` also has the
/// host `UNBOUND`.
const HOST: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
const UNBOUND: &str = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";
/// A host that exists only in `foreign`.
const FOREIGN_HOST: &str = "6ba7b812-9dad-11d1-80b4-00c04fd430c8";

/// The token in a request. The [`AuthKind`] selects the header or parameter that carries the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestToken {
    None,
    /// The token of a user.
    User(AuthKind),
    Ticket(AuthKind),
    /// The token of `own`.
    InfraEnv(AuthKind),
    Cluster(AuthKind),
}

/// The token of a user, in the header for user tokens.
const USER: RequestToken = RequestToken::User(AuthKind::User);

impl RequestToken {
    fn all() -> Vec<Self> {
        let of_kind =
            |kind| [Self::User(kind), Self::Ticket(kind), Self::InfraEnv(kind), Self::Cluster(kind)];
        [Self::None].into_iter().chain(AuthKind::ALL.into_iter().flat_map(of_kind)).collect()
    }

    fn is_of_resource(&self) -> bool {
        matches!(self, Self::InfraEnv(_) | Self::Cluster(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessOutcome {
    /// The handler of the operation was called.
    Allowed,
    Unauthenticated,
    OutOfScope,
}

impl AccessSite {
    pub(super) async fn new() -> Self {
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
        let images =
            ImageServer::new(os_images, library, Arc::new(EmbeddedInputs::new(inventory.clone())), url);
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
        site.register_resources().await;
        site
    }

    async fn register_resources(&mut self) {
        self.cluster = self.create_as_user("clusters", json!({"name": "own"})).await;
        self.foreign_cluster = self.create_as_user("clusters", json!({"name": "foreign"})).await;
        let bound = json!({"cluster_id": self.cluster});
        self.own = self.create_as_user("infra-envs", bound.clone()).await;
        self.neighbour = self.create_as_user("infra-envs", bound).await;
        self.late = self.create_as_user("infra-envs", json!({})).await;
        self.foreign = self.create_as_user("infra-envs", json!({"cluster_id": self.foreign_cluster})).await;
        for (infra_env, hosts) in [
            (&self.own, &[HOST][..]),
            (&self.neighbour, &[HOST]),
            (&self.late, &[HOST, UNBOUND]),
            (&self.foreign, &[HOST, FOREIGN_HOST]),
        ] {
            for host in hosts {
                let path = format!("{API}/infra-envs/{infra_env}/hosts");
                self.send_as_agent(infra_env, &path, &json!({"host_id": host}), 201).await;
            }
        }
        // A host can be bound only after it has sent its inventory report.
        let reply = json!({
            "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": inventory_report().to_string(), "error": "",
        });
        let path = format!("{API}/infra-envs/{}/hosts/{HOST}/instructions", self.late);
        self.send_as_agent(&self.late, &path, &reply, 204).await;
        let bind = format!("{API}/infra-envs/{}/hosts/{HOST}/actions/bind", self.late);
        self.send_as_user(&bind, &json!({"cluster_id": self.cluster}), 200).await;
    }

    async fn send_as_agent(&self, infra_env: &str, path: &str, body: &Value, expected: u16) {
        let token = self.keys.infra_env_token(infra_env.parse().unwrap()).unwrap();
        let request = Request::post(path)
            .header("X-Secret-Key", token.reveal())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()));
        self.send(request.unwrap(), expected).await;
    }

    async fn create_as_user(&self, what: &str, more: Value) -> String {
        let mut body = json!({
            "name": "test", "openshift_version": "4.18", "base_dns_domain": "example.com",
            "pull_secret": r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}"#,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if what == "infra-envs" {
            body.as_object_mut().unwrap().remove("base_dns_domain");
        }
        let resource = self.send_as_user(&format!("{API}/{what}"), &body, 201).await;
        resource["id"].as_str().unwrap().to_owned()
    }

    async fn send_as_user(&self, path: &str, body: &Value, expected: u16) -> Value {
        let request = Request::post(path)
            .header(header::AUTHORIZATION, self.keys.user_token(Utc::now(), None).unwrap().reveal())
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
        self.keys.infra_env_token(own).unwrap().reveal().to_owned()
    }

    fn cluster_token(&self) -> String {
        let cluster: ClusterId = self.cluster.parse().unwrap();
        self.keys.cluster_token(cluster).unwrap().reveal().to_owned()
    }

    /// Sends a request with a token. Returns the status and the body of the response.
    async fn send_with_token(&self, probe: &RequestProbe, token: RequestToken) -> (u16, String) {
        let (kind, text) = match token {
            RequestToken::None => (None, String::new()),
            RequestToken::User(kind) => {
                (Some(kind), self.keys.user_token(Utc::now(), None).unwrap().reveal().to_owned())
            }
            RequestToken::Ticket(kind) => (
                Some(kind),
                self.keys.ticket(Utc::now(), Utc::now() + TimeDelta::minutes(1)).unwrap().reveal().to_owned(),
            ),
            RequestToken::InfraEnv(kind) => (Some(kind), self.infra_env_token()),
            RequestToken::Cluster(kind) => (Some(kind), self.cluster_token()),
        };
        let mut query = probe.query.clone();
        let mut request = Request::builder().method(&probe.method);
        match kind {
            Some(kind @ (AuthKind::Url | AuthKind::ImageUrl | AuthKind::Ticket)) => {
                query.push(format!("{}={text}", kind.place()))
            }
            Some(kind) => request = request.header(kind.place(), &text),
            None => {}
        }
        // No route may read ids from headers.
        for name in ["infra_env_id", "cluster_id", "host_id"] {
            request = request.header(name, &self.own);
        }
        let request = request.uri(format!("{}?{}", probe.path, query.join("&")));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(probe.body.clone())).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let is_stream =
            response.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == "text/event-stream");
        // Do not read a stream of events, because it has no end.
        let body =
            if is_stream { Bytes::new() } else { to_bytes(response.into_body(), 1 << 24).await.unwrap() };
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends a request with a token, and classifies the response.
    async fn send_probe(&self, probe: &RequestProbe, token: RequestToken) -> AccessOutcome {
        let (status, body) = self.send_with_token(probe, token).await;
        assert!(![405, 500].contains(&status), "{probe:?} with {token:?}: {status} {body}");
        assert!(!body.contains("was not found\""), "the route does not exist: {probe:?} {body}");
        match status {
            401 => AccessOutcome::Unauthenticated,
            404 if body.contains("Object Not Found") => AccessOutcome::OutOfScope,
            _ => AccessOutcome::Allowed,
        }
    }

    /// Returns the requests to try on a route, each with the tokens that have access to its resources.
    fn probes_for_route(&self, route: &RouteAccess) -> Vec<(RequestProbe, GrantedByToken)> {
        let Self { cluster, foreign_cluster, own, neighbour, late, foreign, .. } = self;
        let new = |ids: &[(&str, &str)]| RequestProbe::new(route, ids);
        let shape: Vec<&str> = route.ids.iter().map(IdSource::parameter_name).collect();
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
                    // A path parameter takes precedence over a query parameter.
                    (of(foreign_cluster, HOST).with_query("cluster_id", cluster), [false; 4]),
                    (of(cluster, HOST).with_query("cluster_id", foreign_cluster), [false, true, true, true]),
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
                    // The agent tokens have access to the cluster and the infra-env. The operation itself does not find
                    // the host.
                    (of(cluster, own, FOREIGN_HOST), [false, true, false, true]),
                    (new(&[("cluster_id", cluster), ("infra_env_id", foreign)]), [false; 4]),
                    (of(foreign_cluster, own, HOST), [false; 4]),
                    (new(&[("cluster_id", cluster), ("host_id", FOREIGN_HOST)]), [false; 4]),
                ]
            }
            ["cluster_id", "infra_env_id", "host_id", "host_ids"] => self.event_probes(route),
            ["infra_env_id", "cluster_id", "host_id"] => {
                let of = |ids: Value| RequestProbe { body: event_body(ids), ..new(&[]) };
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
                (new(&[("who", late)]), [false; 4]),
                (new(&[("who", foreign)]), [false; 4]),
                (new(&[("who", neighbour)]), [false, false, false, true]),
            ],
            _ => panic!("{route}: no probes for these ids"),
        }
    }

    fn event_probes(&self, route: &RouteAccess) -> Vec<(RequestProbe, GrantedByToken)> {
        let Self { cluster, foreign_cluster, own, foreign, .. } = self;
        let new = |ids: &[(&str, &str)]| RequestProbe::new(route, ids);
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

/// Returns the inventory report of a host that meets all requirements.
fn inventory_report() -> Value {
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

fn event_body(ids: Value) -> String {
    let mut event = json!({"name": "test", "message": "test", "severity": "info", "category": "user", "event_time": "2026-01-01T00:00:00.000Z"});
    event.as_object_mut().unwrap().extend(ids.as_object().unwrap().clone());
    event.to_string()
}

/// Four flags, each `true` if a token has access to all resources of a request: the token of `own` in the URL, the
/// token of `own` in an agent's header, the token of `cluster` in the URL, and the token of `cluster` in an agent's
/// header.
type GrantedByToken = [bool; 4];

/// A request to which a token is added.
#[derive(Clone, Debug)]
struct RequestProbe {
    method: Method,
    path: String,
    query: Vec<String>,
    body: String,
}

impl RequestProbe {
    /// Creates a request to a route, with these ids in its path or query.
    fn new(route: &RouteAccess, ids: &[(&str, &str)]) -> Self {
        const OTHERS: [(&str, &str); 10] = [
            ("openshift_version", "4.18"),
            ("cpu_architecture", "x86_64"),
            ("version", "4.18"),
            ("architecture", "x86_64"),
            ("file", "full.iso"),
            ("revision", "0123456789abcdef"),
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

    fn with_query(mut self, name: &str, value: &str) -> Self {
        self.query.push(format!("{name}={value}"));
        self
    }
}

/// Returns the expected result of a request with a token.
fn expected_outcome(route: &RouteAccess, reached: GrantedByToken, token: RequestToken) -> AccessOutcome {
    let [infra_env_url, infra_env_agent, cluster_url, cluster_agent] = reached;
    let (kind, is_reached) = match token {
        _ if route.tokens.is_empty() && route.ids.is_empty() => return AccessOutcome::Allowed,
        // The path contains a valid token of `own`, so the other token does not matter.
        _ if route.ids.contains(&IdSource::PathToken("token", AuthKind::Url)) => {
            return AccessOutcome::Allowed;
        }
        RequestToken::None => return AccessOutcome::Unauthenticated,
        RequestToken::User(kind @ AuthKind::User) | RequestToken::Ticket(kind @ AuthKind::Ticket) => {
            (kind, true)
        }
        RequestToken::InfraEnv(kind @ AuthKind::Url) => (kind, infra_env_url),
        RequestToken::InfraEnv(kind @ AuthKind::Agent) => (kind, infra_env_agent),
        RequestToken::Cluster(kind @ AuthKind::Url) => (kind, cluster_url),
        RequestToken::Cluster(kind @ AuthKind::Agent) => (kind, cluster_agent),
        // No other header or parameter accepts the token under the policy `local`.
        RequestToken::User(_)
        | RequestToken::Ticket(_)
        | RequestToken::InfraEnv(_)
        | RequestToken::Cluster(_) => {
            return AccessOutcome::Unauthenticated;
        }
    };
    match (route.tokens.contains(&kind), is_reached) {
        (true, true) => AccessOutcome::Allowed,
        // For images, the response is 401. It must not reveal whether a foreign infra-env exists.
        (true, false) if serves_images(route) => AccessOutcome::Unauthenticated,
        (true, false) => AccessOutcome::OutOfScope,
        (false, _) => AccessOutcome::Unauthenticated,
    }
}

/// Returns `true` if a route serves images. Tokens of clusters have no access to images.
fn serves_images(route: &RouteAccess) -> bool {
    !route.path.starts_with("/api/")
}

/// Returns query parameters with ids that the route does not declare, so it must ignore them.
fn undeclared_id_parameters(site: &AccessSite, route: &RouteAccess) -> Vec<String> {
    let declared: Vec<_> = route.ids.iter().map(IdSource::parameter_name).collect();
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

async fn check_routes_with_tokens(tokens: &[RequestToken]) {
    let site = AccessSite::new().await;
    let mut count = 0;
    for route in &site.table {
        for (probe, reached) in site.probes_for_route(route) {
            for token in tokens {
                let expected = expected_outcome(route, reached, *token);
                let outcome = site.send_probe(&probe, *token).await;
                assert_eq!(outcome, expected, "{route} {probe:?} with {token:?}");
                for more in undeclared_id_parameters(&site, route) {
                    let mut probe = probe.clone();
                    probe.query.push(more);
                    let outcome = site.send_probe(&probe, *token).await;
                    assert_eq!(outcome, expected, "{route} {probe:?} with {token:?}");
                    count += 1;
                }
                count += 1;
            }
        }
    }
    println!("{count} requests on {} routes", site.table.len());
    assert!(site.table.len() > 100, "{}", site.table.len());
}

#[tokio::test]
async fn tokens_of_resources_have_the_access_that_routes_declare() {
    let tokens: Vec<_> = RequestToken::all().into_iter().filter(RequestToken::is_of_resource).collect();
    check_routes_with_tokens(&tokens).await;
}

#[tokio::test]
async fn other_tokens_have_the_access_that_routes_declare() {
    let is_other = |token: &RequestToken| *token != USER && !token.is_of_resource();
    let tokens: Vec<_> = RequestToken::all().into_iter().filter(is_other).collect();
    check_routes_with_tokens(&tokens).await;
}

/// Returns requests to a route in which one id is not a UUID.
fn probes_with_invalid_ids(route: &RouteAccess) -> Vec<RequestProbe> {
    let in_path = |id: &&IdSource| matches!(id, IdSource::Path(_));
    let declared = route.ids.iter().filter(|id| in_path(id) || matches!(id, IdSource::Query(_)));
    let with = |id: &IdSource, bad: &'static str| {
        let others =
            route.ids.iter().filter(in_path).filter(|other| other.parameter_name() != id.parameter_name());
        let mut ids: Vec<_> = others.map(|other| (other.parameter_name(), HOST)).collect();
        ids.push((id.parameter_name(), bad));
        RequestProbe::new(route, &ids)
    };
    declared.flat_map(|id| ["nothing", "*", "%00"].map(|bad| with(id, bad))).collect()
}

#[tokio::test]
async fn rejects_ids_that_are_not_uuids() {
    let site = AccessSite::new().await;
    let mut count = 0;
    for route in site.table.iter().filter(|route| route.path.starts_with("/api/")) {
        let tokens: Vec<_> = route.tokens.iter().filter_map(|kind| accepted_token(*kind)).collect();
        let probes = probes_with_invalid_ids(route);
        for (probe, token) in probes.iter().flat_map(|probe| tokens.iter().map(move |token| (probe, *token)))
        {
            let (status, body) = site.send_with_token(probe, token).await;
            assert_eq!(status, 400, "{route} {probe:?} {token:?}: {body}");
            assert!(body.contains("must be of type uuid"), "{route} {probe:?}: {body}");
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// Returns a token that the policy `local` accepts in the header or parameter for `kind`.
fn accepted_token(kind: AuthKind) -> Option<RequestToken> {
    match kind {
        AuthKind::User => Some(USER),
        AuthKind::Agent | AuthKind::Url => Some(RequestToken::InfraEnv(kind)),
        AuthKind::Image | AuthKind::ImageUrl | AuthKind::Watcher | AuthKind::Ticket => None,
    }
}

/// Path parameters that are neither ids nor tokens.
const OTHER_PARAMETERS: [&str; 9] = [
    "architecture",
    "cpu_architecture",
    "file",
    "machine",
    "openshift_version",
    "operator_name",
    "revision",
    "validation_id",
    "version",
];

/// A route must declare every path parameter with the id of a resource or with a token.
#[tokio::test]
async fn routes_declare_the_ids_in_their_paths() {
    let site = AccessSite::new().await;
    for route in &site.table {
        for name in route.path.split('{').skip(1).map(|part| part.split_once('}').unwrap().0) {
            // The id of an operator bundle is the same in all services, so it selects no resource of a tenant.
            let is_no_id =
                OTHER_PARAMETERS.contains(&name) || route.path.ends_with("/operators/bundles/{id}");
            let is_declared = route.ids.iter().any(|id| match id {
                IdSource::Path(declared) | IdSource::PathToken(declared, _) => *declared == name,
                IdSource::Query(_) | IdSource::Body(_) => false,
            });
            assert!(is_declared != is_no_id, "{route}: {name}");
        }
    }
}

/// Extracts the paths of a router from its debug output.
fn registered_paths<S>(router: &Router<S>) -> BTreeSet<String> {
    let output = format!("{router:?}");
    let (_, paths) = output.split_once("paths: {").unwrap();
    let (paths, _) = paths.split_once("} }").unwrap();
    let texts = paths.split('"').skip(1).step_by(2);
    texts.filter(|path| !path.contains("__private__")).map(str::to_owned).collect()
}

fn table_paths(table: &[RouteAccess]) -> BTreeSet<String> {
    table.iter().map(|route| route.path.clone()).collect()
}

#[tokio::test]
async fn every_registered_route_is_in_the_table() {
    let raw: Router = Router::new()
        .route("/a/{b}", axum::routing::get(async || ()))
        .route("/c", axum::routing::get(async || ()));
    assert_eq!(registered_paths(&raw), BTreeSet::from(["/a/{b}".to_owned(), "/c".to_owned()]));
    let images = AccessSite::new().await.images;
    let (router, table) = operations([super::network_files::operation()]).into_parts().0.into_parts();
    assert_eq!(registered_paths(&router), table_paths(&table));
    for area in [super::page::routes(), super::api_docs::routes(), super::health::image_routes(&images)] {
        let (router, table) = area.into_parts();
        assert_eq!(registered_paths(&router), table_paths(&table));
    }
    let (router, table) = images.guarded_router().into_parts();
    assert_eq!(registered_paths(&router), table_paths(&table));
}

/// `UPDATE_GOLDEN=1` updates the table.
#[tokio::test]
async fn documentation_has_the_route_table() {
    const MARK: &str =
        "| method | route | tokens | ids that the token is checked against |\n|---|---|---|---|\n";
    let site = AccessSite::new().await;
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

/// User tokens delete resources, so they have a separate test.
#[tokio::test]
async fn user_tokens_grant_access_to_everything() {
    check_routes_with_tokens(&[USER]).await;
}
