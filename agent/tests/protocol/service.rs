//! A service whose responses are scripted by the test. It records all requests with their times.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assisted::client::ApiClient;
use assisted::client::reqwest::Client;
use assisted::{HostId, InfraEnvId};
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::ServiceExt;

/// Container image of the agent in the configuration of the service.
pub(crate) const SERVICE_VERSION: &str = "quay.io/example/agent:new";
/// Container image of the agents in these tests.
pub(crate) const AGENT_VERSION: &str = "quay.io/example/agent:old";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Register,
    Poll,
    Reply,
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) purpose: Purpose,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) version: String,
    pub(crate) body: Value,
    /// Time since the start of the service.
    pub(crate) at: Duration,
    /// Number of earlier requests with the same purpose.
    pub(crate) number: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    body: Value,
    retry_after: Option<&'static str>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, body, retry_after: None }
    }

    pub(crate) fn error(status: u16) -> Self {
        let code = status.to_string();
        Self::json(
            status,
            json!({"kind": "Error", "id": status, "href": "", "code": code, "reason": "scripted"}),
        )
    }

    pub(crate) fn retry_after(self, seconds: &'static str) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn steps(seconds: u32, action: &str, instructions: Value) -> Self {
        let steps = json!({
            "next_instruction_seconds": seconds, "post_step_action": action, "instructions": instructions,
        });
        Self::json(200, steps)
    }

    pub(crate) fn no_steps() -> Self {
        Self::steps(60, "continue", Value::Null)
    }
}

/// Returns a step in the JSON of a poll response.
pub(crate) fn step(step_type: &str, args: &[&str]) -> Value {
    json!({"step_type": step_type, "step_id": format!("{step_type}-00000001"), "args": args})
}

type Script = Arc<dyn Fn(&Received) -> Option<Answer> + Send + Sync>;

pub(crate) struct ScriptedService {
    pub(crate) url: String,
    pub(crate) infra_env: InfraEnvId,
    pub(crate) host: HostId,
    state: Arc<ServiceState>,
}

struct ServiceState {
    script: Script,
    begun: Instant,
    received: Mutex<Vec<Received>>,
    count: watch::Sender<usize>,
}

impl ScriptedService {
    /// Starts a service. If the script returns `None`, the service responds as usual: it registers the host, returns no
    /// steps, and accepts replies.
    pub(crate) async fn start(script: impl Fn(&Received) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let host = HostId::fresh();
        let state = Arc::new(ServiceState {
            script: Arc::new(script),
            begun: Instant::now(),
            received: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let shared = Arc::clone(&state);
        let app = Router::new().fallback(move |request: Request| {
            let state = Arc::clone(&shared);
            async move { state.respond(request).await }
        });
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let app = app.clone();
                let service = service_fn(move |request| app.clone().oneshot(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, infra_env: InfraEnvId::fresh(), host, state }
    }

    /// Returns a client without timeouts: paused time jumps forward and would trigger them too early.
    pub(crate) fn client(&self) -> ApiClient {
        let forever = Duration::from_secs(1 << 32);
        let transport = Client::builder().no_proxy().pool_idle_timeout(None);
        let builder = ApiClient::builder(&self.url).transport(transport);
        builder.timeout(forever).connect_timeout(forever).build().unwrap()
    }

    /// Waits until the service has received `count` requests of a purpose, and returns all of them.
    pub(crate) async fn wait_for(&self, purpose: Purpose, count: usize) -> Vec<Received> {
        let mut changes = self.state.count.subscribe();
        loop {
            let requests = self.received(purpose);
            if requests.len() >= count {
                return requests;
            }
            changes.changed().await.unwrap();
        }
    }

    pub(crate) fn received(&self, purpose: Purpose) -> Vec<Received> {
        let all = self.state.received.lock().unwrap();
        all.iter().filter(|request| request.purpose == purpose).cloned().collect()
    }

    /// Returns the times of the requests of a purpose, in whole seconds.
    pub(crate) fn seconds(&self, purpose: Purpose) -> Vec<u64> {
        self.received(purpose).iter().map(|request| request.at.as_secs()).collect()
    }
}

impl ServiceState {
    async fn respond(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1 << 24).await.unwrap();
        let path = head.uri.path().to_owned();
        let purpose = match (&head.method, path.rsplit('/').next()) {
            (&Method::POST, Some("hosts")) => Purpose::Register,
            (&Method::GET, Some("instructions")) => Purpose::Poll,
            (&Method::POST, Some("instructions")) => Purpose::Reply,
            _ => Purpose::Other,
        };
        let version = head.headers.get("discovery_agent_version");
        let mut received = Received {
            purpose,
            path,
            query: head.uri.query().unwrap_or_default().to_owned(),
            version: version.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default(),
            body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() },
            at: self.begun.elapsed(),
            number: 0,
        };
        {
            let mut all = self.received.lock().unwrap();
            received.number = all.iter().filter(|request| request.purpose == purpose).count();
            all.push(received.clone());
        }
        self.count.send_modify(|count| *count += 1);
        let script_response = (self.script)(&received).unwrap_or_else(|| self.default_response(&received));
        let mut response = match &script_response.body {
            Value::Null => StatusCode::from_u16(script_response.status).unwrap().into_response(),
            body => (StatusCode::from_u16(script_response.status).unwrap(), axum::Json(body.clone()))
                .into_response(),
        };
        if let Some(seconds) = script_response.retry_after {
            response.headers_mut().insert("retry-after", seconds.parse().unwrap());
        }
        response
    }

    fn default_response(&self, request: &Received) -> Answer {
        match request.purpose {
            Purpose::Register => Answer::json(201, registered(request)),
            Purpose::Poll => Answer::no_steps(),
            Purpose::Reply | Purpose::Other => Answer::json(204, Value::Null),
        }
    }
}

/// Returns the usual response to a registration, with the agent version that the service is configured with.
fn registered(request: &Received) -> Value {
    let infra_env = request.path.split('/').rev().nth(1).unwrap();
    let host = request.body["host_id"].as_str().unwrap();
    let arguments = json!({
        "infra_env_id": infra_env, "host_id": host, "agent_version": SERVICE_VERSION,
    });
    registered_host(infra_env, host, &json!({"args": [arguments.to_string()]}))
}

/// Returns the response to a registration.
pub(crate) fn registered_host(infra_env: &str, host: &str, command: &Value) -> Value {
    json!({
        "id": host, "infra_env_id": infra_env, "kind": "Host", "href": "", "status": "discovering-unbound",
        "status_info": "Waiting for host to send hardware details", "next_step_runner_command": command,
    })
}

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
