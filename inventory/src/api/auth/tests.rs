//! Requests with valid and invalid tokens, to operations of every kind.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, TimeDelta, Utc};
use ignition::discovery::HttpUrl;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

use super::{
    Agent, Caller, EventsOf, Files, Lister, Logs, LogsSource, NamedInBody, Reader, User, WholeService,
};
use crate::api::{ApiError, ApiState};
use crate::auth::{KeyTexts, LocalKeys, Named, Policy};
use crate::catalogue::Catalogue;
use crate::files::FileStore;
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::store::{Changes, Columns, Key, Kind, Outcome, Row, SqlStore, Step};
use crate::{Inventory, ManualClock, Settings};

/// Two infra-envs with one host each in the same cluster, a third infra-env with a host in no cluster, and another
/// cluster.
struct Site {
    app: Router,
    inventory: Inventory,
    clock: Arc<ManualClock>,
    texts: KeyTexts,
    keys: LocalKeys,
    own: InfraEnvId,
    mate: InfraEnvId,
    stranger: InfraEnvId,
    host: HostId,
    cluster: ClusterId,
    other_cluster: ClusterId,
    _directory: TempDir,
}

fn row(kind: Kind, parent: Option<Uuid>, id: Uuid, cluster: Option<ClusterId>) -> Row {
    let key = Key { kind, parent, id };
    let columns = Columns { cluster: cluster.map(|id| id.0), ..Columns::default() };
    Row { columns, ..Row::new(key, "{}".to_owned()) }
}

async fn apply(inventory: &Inventory, steps: Vec<Step>) {
    let changes = Changes { steps, events: Vec::new() };
    assert_eq!(inventory.records().store().commit(changes).await.unwrap(), Outcome::Done);
}

macro_rules! responds_to {
    ($kind:ident, $target:ty) => {
        |_: Caller<$kind, $target>| async { StatusCode::OK }
    };
}

async fn post_event(
    caller: Caller<Agent, NamedInBody>,
    State(inventory): State<Inventory>,
    body: String,
) -> Result<StatusCode, ApiError> {
    let cluster = body.parse().ok();
    caller.require(&inventory, &Named { cluster, ..Named::default() }).await?;
    Ok(StatusCode::OK)
}

fn routes() -> Router<ApiState> {
    Router::new()
        .route("/infra-envs", get(responds_to!(Lister, WholeService)).post(responds_to!(User, WholeService)))
        .route(
            "/infra-envs/{infra_env_id}",
            get(responds_to!(Files, InfraEnvId)).patch(responds_to!(User, InfraEnvId)),
        )
        .route("/infra-envs/{infra_env_id}/hosts", post(responds_to!(Agent, InfraEnvId)))
        .route("/infra-envs/{infra_env_id}/hosts/{host_id}", get(responds_to!(Agent, HostKey)))
        .route("/clusters/{cluster_id}", get(responds_to!(Reader, ClusterId)))
        .route(
            "/clusters/{cluster_id}/logs",
            get(responds_to!(Logs, ClusterId)).post(responds_to!(Agent, LogsSource)),
        )
        .route("/events", get(responds_to!(Logs, EventsOf)).post(post_event))
        .fallback(|| async { StatusCode::NOT_FOUND.into_response() })
}

impl Site {
    async fn new() -> Self {
        let texts = KeyTexts::generate().unwrap();
        let keys = LocalKeys::parse(texts.private.reveal(), Some(&texts.public)).unwrap();
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("test.db")).await.unwrap();
        let url = HttpUrl::parse("url", "http://127.0.0.1").unwrap();
        let clock = Arc::new(ManualClock::new(Utc::now()));
        let settings = Settings { clock: clock.clone(), ..Settings::new(url.clone(), url) };
        let policy = Policy::local(keys.clone());
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let inventory = Inventory::new(Arc::new(store), files, Catalogue::default(), settings, policy);
        let [own, mate, stranger] = [0; 3].map(|_| InfraEnvId::fresh());
        let [cluster, other_cluster] = [0; 2].map(|_| ClusterId::fresh());
        let host = HostId::fresh();
        apply(
            &inventory,
            vec![
                Step::Insert(row(Kind::Cluster, None, cluster.0, None)),
                Step::Insert(row(Kind::Cluster, None, other_cluster.0, None)),
                Step::Insert(row(Kind::InfraEnv, None, own.0, Some(cluster))),
                Step::Insert(row(Kind::InfraEnv, None, mate.0, None)),
                Step::Insert(row(Kind::InfraEnv, None, stranger.0, None)),
                Step::Insert(row(Kind::Host, Some(own.0), host.0, Some(cluster))),
                Step::Insert(row(Kind::Host, Some(mate.0), host.0, Some(cluster))),
                Step::Insert(row(Kind::Host, Some(stranger.0), host.0, None)),
            ],
        )
        .await;
        let app = routes().with_state(ApiState::new(inventory.clone()));
        Self {
            app,
            inventory,
            clock,
            texts,
            keys,
            own,
            mate,
            stranger,
            host,
            cluster,
            other_cluster,
            _directory: directory,
        }
    }

    /// Sends a request with a header. Returns the status and, for an error, its text.
    async fn send(
        &self,
        line: &str,
        header: Option<(&'static str, HeaderValue)>,
        body: String,
    ) -> (u16, String) {
        let (method, uri) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(uri).body(Body::from(body)).unwrap();
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value);
        }
        let response = self.app.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 16).await.unwrap();
        if body.is_empty() {
            return (status, String::new());
        }
        let body: Value = serde_json::from_slice(&body).unwrap();
        // An error before an operation begins has a `message`. The 404 that hides a resource has a `reason`.
        if status == 404 {
            assert_eq!((&body["code"], &body["kind"]), (&json!("404"), &json!("Error")), "{body}");
            (status, body["reason"].as_str().unwrap().to_owned())
        } else {
            assert_eq!(body["code"], status, "{body}");
            (status, body["message"].as_str().unwrap().to_owned())
        }
    }

    async fn with(&self, line: &str, name: &'static str, token: &str) -> u16 {
        self.send(line, Some((name, HeaderValue::from_str(token).unwrap())), String::new()).await.0
    }

    async fn as_agent(&self, line: &str, infra_env: InfraEnvId) -> u16 {
        self.with(line, "x-secret-key", self.keys.infra_env_token(infra_env).unwrap().reveal()).await
    }

    async fn with_url_token(&self, line: &str, token: &str) -> u16 {
        let joint = if line.contains('?') { '&' } else { '?' };
        self.send(&format!("{line}{joint}api_key={token}"), None, String::new()).await.0
    }

    fn signed(&self, claims: &Value) -> String {
        encode(&Header::new(Algorithm::ES256), claims, &self.keys.signing).unwrap()
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

/// Returns invalid tokens, each with a description and the expected error text.
fn invalid_tokens(site: &Site) -> Vec<(&'static str, String, &'static str)> {
    const UNREADABLE: &str = "the token is not a valid ES256 JWT";
    const FOREIGN: &str = "the token is not signed with the key of this service";
    let good = site.keys.infra_env_token(site.own).unwrap().reveal().to_owned();
    let claims = json!({"infra_env_id": site.own});
    let (head, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let foreign = LocalKeys::parse(KeyTexts::generate().unwrap().private.reveal(), None).unwrap();
    let hmac = EncodingKey::from_secret(site.texts.public.as_bytes());
    let hmac = encode(&Header::new(Algorithm::HS256), &claims, &hmac).unwrap();
    let es384 = unsigned(&json!({"alg": "ES384"}), &claims);
    let mut flipped = BASE64.decode(signature).unwrap();
    flipped[40] ^= 1;
    let tampered = BASE64.encode(json!({"infra_env_id": site.stranger}).to_string());
    vec![
        ("of another key", foreign.infra_env_token(site.own).unwrap().reveal().to_owned(), FOREIGN),
        ("unsigned", format!("{}.", unsigned(&json!({"alg": "none"}), &claims)), UNREADABLE),
        (
            "unsigned, signed",
            format!("{}.{signature}", unsigned(&json!({"alg": "None"}), &claims)),
            UNREADABLE,
        ),
        ("signed with the public key", hmac, UNREADABLE),
        ("of RSA", format!("{}.{signature}", unsigned(&json!({"alg": "RS256"}), &claims)), UNREADABLE),
        ("of another curve", format!("{es384}.{signature}"), UNREADABLE),
        ("without signature", format!("{head}."), FOREIGN),
        ("without its last part", head.to_owned(), UNREADABLE),
        ("cut", good[..good.len() - 5].to_owned(), UNREADABLE),
        ("with a signature of nothing", format!("{head}.{}", BASE64.encode([0; 64])), FOREIGN),
        ("with another signature", format!("{head}.{}", BASE64.encode(flipped)), FOREIGN),
        ("with another payload", format!("{header}.{tampered}.{signature}"), FOREIGN),
        ("with a fourth part", format!("{good}.{signature}"), UNREADABLE),
        ("with a tail", format!("{good}A"), FOREIGN),
        ("of three dots", "...".to_owned(), UNREADABLE),
        ("of a mebibyte", "A".repeat(1 << 20), UNREADABLE),
        ("of much too much", format!("{good}.{}", "A".repeat(1 << 16)), UNREADABLE),
        (
            "expired",
            site.signed(&json!({"infra_env_id": site.own, "exp": 1_000_000_000})),
            "the token has expired",
        ),
        (
            "of next year",
            site.signed(&json!({"infra_env_id": site.own, "nbf": Utc::now().timestamp() + 31_536_000})),
            "the token is not valid yet",
        ),
        (
            "for another service",
            site.signed(&json!({"infra_env_id": site.own, "aud": "another service"})),
            "the token is for another audience",
        ),
        (
            "of people",
            site.keys.user_token(Utc::now(), None).unwrap().reveal().to_owned(),
            "the token is not for X-Secret-Key",
        ),
        (
            "of both people and machines",
            site.signed(&json!({"infra_env_id": site.own, "auth_scheme": "userAuth"})),
            "the token does not name a scope",
        ),
        ("of nothing", site.signed(&json!({})), "the token does not name a scope"),
    ]
}

#[tokio::test]
async fn rejects_invalid_tokens() {
    let site = Site::new().await;
    let line = format!("GET /infra-envs/{}", site.own);
    for (what, token, reason) in invalid_tokens(&site) {
        let header = HeaderValue::from_str(&token).unwrap();
        let response = site.send(&line, Some(("x-secret-key", header.clone())), String::new()).await;
        assert_eq!(response, (401, reason.to_owned()), "a token {what}");
        assert!(!response.1.contains(&token));
        if token.len() < 60_000 {
            assert_eq!(site.with_url_token(&line, &token).await, 401, "a token {what}");
        }
        if what != "of people" {
            let (status, _) = site.send(&line, Some(("authorization", header)), String::new()).await;
            assert_eq!(status, 401, "a token {what}");
        }
    }
    for bytes in [&b"\xFF\xFE"[..], "eyJ\u{e9}.b.c".as_bytes()] {
        let header = HeaderValue::from_bytes(bytes).unwrap();
        let (status, _) = site.send(&line, Some(("x-secret-key", header)), String::new()).await;
        assert_eq!(status, 401);
    }
    assert_eq!(site.with_url_token(&line, "%00%FFeyJ").await, 401);
    assert_eq!(site.send(&line, None, String::new()).await.1, "unauthenticated for invalid credentials");
}

#[tokio::test]
async fn token_is_valid_only_in_its_own_header_or_parameter() {
    let site = Site::new().await;
    let line = format!("GET /infra-envs/{}", site.own);
    let token = site.keys.infra_env_token(site.own).unwrap();
    let user = site.keys.user_token(Utc::now(), Some(Utc::now() + TimeDelta::hours(1))).unwrap();
    let (token, user) = (token.reveal(), user.reveal());
    assert_eq!(site.with(&line, "x-secret-key", token).await, 200);
    assert_eq!(site.with_url_token(&line, token).await, 200);
    for name in ["authorization", "image-token", "watcher-authorization"] {
        assert_eq!(site.with(&line, name, token).await, 401, "{name}");
    }
    assert_eq!(site.send(&format!("{line}?image_token={token}"), None, String::new()).await.0, 401);
    for token in [user.to_owned(), format!("Bearer {user}"), format!("bearer  {user}")] {
        assert_eq!(site.with(&line, "authorization", &token).await, 200);
        assert_eq!(site.with("POST /infra-envs", "authorization", &token).await, 200);
    }
    assert_eq!(site.with(&line, "authorization", &format!("Basic {user}")).await, 401);
    assert_eq!(site.with(&line, "x-secret-key", user).await, 401);
    assert_eq!(site.with(&line, "watcher-authorization", user).await, 401);
    assert_eq!(site.with_url_token(&line, user).await, 401);
    // Operations for users refuse an agent's token.
    assert_eq!(site.with(&line.replace("GET", "PATCH"), "x-secret-key", token).await, 401);
    assert_eq!(site.with_url_token("GET /infra-envs", token).await, 401);
}

#[tokio::test]
async fn cached_token_expires_at_its_expiry_time() {
    let site = Site::new().await;
    let line = format!("GET /infra-envs/{}", site.own);
    let end = (Utc::now() + TimeDelta::hours(1)).timestamp();
    let token = site.signed(&json!({"infra_env_id": site.own, "exp": end}));
    assert_eq!(site.with(&line, "x-secret-key", &token).await, 200);
    site.clock.set(DateTime::from_timestamp(end - 1, 0).unwrap());
    assert_eq!(site.with(&line, "x-secret-key", &token).await, 200);
    site.clock.advance(Duration::from_secs(1));
    assert_eq!(site.with(&line, "x-secret-key", &token).await, 401);
}

#[tokio::test]
async fn token_is_refused_after_its_resource_is_removed() {
    let site = Site::new().await;
    let line = format!("GET /infra-envs/{}", site.stranger);
    assert_eq!(site.as_agent(&line, site.stranger).await, 200);
    let infra_env = Key { kind: Kind::InfraEnv, parent: None, id: site.stranger.0 };
    apply(&site.inventory, vec![Step::Remove(infra_env, 1)]).await;
    assert_eq!(site.as_agent(&line, site.stranger).await, 401);
    let line = format!("GET /clusters/{}", site.other_cluster);
    let token = site.keys.cluster_token(site.other_cluster).unwrap();
    assert_eq!(site.with(&line, "x-secret-key", token.reveal()).await, 200);
    let columns = Columns { deleted: true, ..Columns::default() };
    let deleted = Row { columns, generation: 2, ..row(Kind::Cluster, None, site.other_cluster.0, None) };
    apply(&site.inventory, vec![Step::Replace(deleted)]).await;
    assert_eq!(site.with(&line, "x-secret-key", token.reveal()).await, 401);
    let never = site.keys.infra_env_token(InfraEnvId::fresh()).unwrap();
    assert_eq!(site.with(&line, "x-secret-key", never.reveal()).await, 401);
}

#[tokio::test]
async fn url_token_grants_access_only_to_its_resource() {
    let site = Site::new().await;
    let infra_env = site.keys.infra_env_token(site.own).unwrap().reveal().to_owned();
    let cluster = site.keys.cluster_token(site.cluster).unwrap().reveal().to_owned();
    let both = site.signed(&json!({"infra_env_id": site.own, "cluster_id": site.cluster}));
    let (own, mate, host) = (site.own, site.mate, site.host);
    for (line, token, expected) in [
        (format!("GET /infra-envs/{own}"), &infra_env, 200),
        (format!("GET /infra-envs/{mate}"), &infra_env, 404),
        (format!("GET /infra-envs/{own}"), &both, 200),
        (format!("GET /infra-envs/{own}"), &cluster, 404),
        (format!("GET /clusters/{}/logs", site.cluster), &cluster, 200),
        (format!("GET /clusters/{}/logs", site.cluster), &infra_env, 404),
        (format!("GET /clusters/{}/logs", site.cluster), &both, 404),
        (format!("GET /clusters/{}/logs", site.other_cluster), &cluster, 404),
        (format!("GET /clusters/{}/logs?cluster_id={}", site.other_cluster, site.cluster), &cluster, 404),
        ("GET /events".to_owned(), &infra_env, 404),
        (format!("GET /events?infra_env_id={own}"), &infra_env, 200),
        (format!("GET /events?infra_env_id={mate}"), &infra_env, 404),
        (format!("GET /events?infra_env_id={own}&infra_env_id={mate}"), &infra_env, 404),
        (format!("GET /events?cluster_id={}", site.cluster), &infra_env, 404),
        (format!("GET /events?host_id={host}"), &infra_env, 200),
        (format!("GET /events?infra_env_id={own}&cluster_id={}", site.cluster), &infra_env, 404),
        (format!("GET /events?infra_env_id={own}&host_ids={}", HostId::fresh()), &infra_env, 404),
        (format!("GET /events?host_ids={host},{}", HostId::fresh()), &infra_env, 404),
        (format!("GET /events?cluster_id={}", site.cluster), &cluster, 200),
        (format!("GET /events?cluster_id={}", site.other_cluster), &cluster, 404),
        ("GET /events".to_owned(), &cluster, 404),
    ] {
        assert_eq!(site.with_url_token(&line, token).await, expected, "{line}");
    }
    let header = Some(("x-secret-key", HeaderValue::from_str(&infra_env).unwrap()));
    let hidden = site.send(&format!("GET /infra-envs/{mate}"), header, String::new()).await;
    assert_eq!(hidden, (404, "Object Not Found".to_owned()));
}

#[tokio::test]
async fn agent_token_grants_access_to_its_cluster_and_hosts() {
    let site = Site::new().await;
    let Site { own, mate, stranger, host, cluster, other_cluster, .. } = &site;
    let new = HostId::fresh();
    for (line, token, expected) in [
        (format!("POST /infra-envs/{own}/hosts"), own, 200),
        (format!("GET /infra-envs/{own}/hosts/{new}"), own, 200),
        (format!("POST /infra-envs/{mate}/hosts"), own, 404),
        (format!("GET /infra-envs/{mate}"), own, 404),
        // The token grants access to a host of the same cluster, but not to the other hosts of that host's infra-env.
        (format!("GET /infra-envs/{mate}/hosts/{host}"), own, 200),
        (format!("GET /infra-envs/{own}/hosts/{host}"), mate, 200),
        (format!("GET /infra-envs/{mate}/hosts/{new}"), own, 404),
        (format!("GET /infra-envs/{stranger}/hosts/{host}"), own, 404),
        (format!("GET /infra-envs/{own}/hosts/{host}"), stranger, 404),
        // The token grants access to the cluster of its infra-env, and to the cluster of one of that infra-env's hosts.
        (format!("GET /clusters/{cluster}"), own, 200),
        (format!("GET /clusters/{cluster}"), mate, 200),
        (format!("GET /clusters/{cluster}"), stranger, 404),
        (format!("GET /clusters/{other_cluster}"), own, 404),
        (format!("POST /clusters/{cluster}/logs?infra_env_id={own}&host_id={host}"), own, 200),
        (format!("POST /clusters/{cluster}/logs?infra_env_id={stranger}&host_id={host}"), own, 404),
        (format!("GET /infra-envs/{}/hosts/{host}", own.0.simple()), own, 200),
        ("GET /infra-envs/nothing/hosts/nothing".to_owned(), own, 400),
    ] {
        assert_eq!(site.as_agent(&line, *token).await, expected, "{line}");
    }
    let token = site.keys.cluster_token(*cluster).unwrap();
    for (line, expected) in [
        (format!("GET /clusters/{cluster}"), 200),
        (format!("GET /clusters/{other_cluster}"), 404),
        (format!("GET /infra-envs/{own}"), 200),
        (format!("GET /infra-envs/{mate}"), 404),
        (format!("GET /infra-envs/{mate}/hosts/{host}"), 200),
        (format!("GET /infra-envs/{stranger}/hosts/{host}"), 404),
    ] {
        assert_eq!(site.with(&line, "x-secret-key", token.reveal()).await, expected, "{line}");
    }
}

#[tokio::test]
async fn operation_checks_resources_named_in_body() {
    let site = Site::new().await;
    let token = HeaderValue::from_str(site.keys.infra_env_token(site.own).unwrap().reveal()).unwrap();
    let header = || Some(("x-secret-key", token.clone()));
    assert_eq!(site.send("POST /events", header(), site.cluster.to_string()).await.0, 200);
    assert_eq!(site.send("POST /events", header(), site.other_cluster.to_string()).await.0, 404);
    assert_eq!(site.send("POST /events", header(), String::new()).await.0, 404);
}

#[tokio::test]
async fn failing_database_is_503_not_401() {
    let site = Site::new().await;
    site.inventory.records().store().close().await;
    let status = site.as_agent(&format!("GET /infra-envs/{}", site.own), site.own).await;
    assert_eq!(status, 503);
}
