//! A database that is unreachable for a while.

use std::time::{Duration, Instant};

use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::database::{TestDatabase, postgres_url};
use crate::service::{PULL_SECRET, TestService};
use crate::store::block_on;

/// The proxy's handling of connections to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyMode {
    Forward,
    /// Closes open connections, and refuses new ones.
    Refuse,
    /// Keeps connections open, but forwards nothing.
    Swallow,
}

struct FaultyProxy {
    port: u16,
    mode: watch::Sender<ProxyMode>,
}

impl FaultyProxy {
    async fn new(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, modes) = watch::channel(ProxyMode::Forward);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward_connection(client, server.clone(), modes.clone()));
            }
        });
        Self { port, mode }
    }
}

async fn forward_connection(mut client: TcpStream, server: String, mut modes: watch::Receiver<ProxyMode>) {
    if *modes.borrow() == ProxyMode::Forward {
        let mut server = TcpStream::connect(server).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
            _ = modes.wait_for(|mode| *mode != ProxyMode::Forward) => {}
        }
        // In the mode `Swallow`, both connections stay open.
        let _ = modes.wait_for(|mode| *mode != ProxyMode::Swallow).await;
        return;
    }
    let _ = modes.wait_for(|mode| *mode != ProxyMode::Swallow).await;
}

#[test]
fn database_outage_causes_503_with_retry_after() {
    let Some(server) = postgres_url() else { return };
    block_on(async {
        let database = TestDatabase::create(&server).await;
        let (scheme, rest) = database.url.split_once("://").unwrap();
        let (authority, name) = rest.split_once('/').unwrap();
        let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let proxy = FaultyProxy::new(address.to_owned()).await;
        let url = format!("{scheme}://{user}@127.0.0.1:{}/{name}", proxy.port);
        let store = SqlStore::open(&url).await.unwrap();
        let service = TestService::start_on_store(store, None, Policy::Open, |_| {}).await;
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET});
        let infra_env = service.post("/v2/infra-envs", &body).await.json_with_status(201);
        let path = format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap());

        for mode in [ProxyMode::Refuse, ProxyMode::Forward, ProxyMode::Swallow, ProxyMode::Forward] {
            proxy.mode.send_replace(mode);
            let is_open = mode == ProxyMode::Forward;
            let start = Instant::now();
            // The service detects within a second that the database is available again.
            while is_open && service.get(&path).await.status == 503 {
                assert!(start.elapsed() < Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let answers = [
                service.get(&path).await,
                service.get("/v2/infra-envs").await,
                service.get("/v2/events").await,
                service.post("/v2/infra-envs", &body).await,
                service.patch(&path, &json!({"additional_ntp_sources": "ntp.example.com"})).await,
            ];
            for answer in answers {
                if is_open {
                    assert!(answer.status < 300, "{}", answer.text);
                } else {
                    assert_eq!(answer.refusal_reason(503), "the database does not respond; try again");
                    assert_eq!(answer.header("retry-after"), Some("5"));
                }
            }
        }
        service.stop().await;
        database.drop().await;
    });
}
