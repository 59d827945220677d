//! A database that is away for a while.

use kindling::inventory::auth::Policy;
use kindling::inventory::store::SqlStore;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::database::{Database, postgres};
use crate::service::{PULL_SECRET, Service};
use crate::store::block_on;

/// A way to a server that can be closed: what goes over it breaks off then, and whoever comes is sent away.
struct Way {
    port: u16,
    is_open: watch::Sender<bool>,
}

impl Way {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_open, opened) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), opened.clone()));
            }
        });
        Self { port, is_open }
    }
}

async fn pass(mut client: TcpStream, server: String, mut opened: watch::Receiver<bool>) {
    if !*opened.borrow() {
        return;
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = opened.wait_for(|is_open| !is_open) => {}
    }
}

#[test]
fn who_comes_while_the_database_is_away_is_asked_to_come_again() {
    let Some(server) = postgres() else { return };
    block_on(async {
        let database = Database::create(&server).await;
        let (scheme, rest) = database.url.split_once("://").unwrap();
        let (authority, name) = rest.split_once('/').unwrap();
        let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let way = Way::to(place.to_owned()).await;
        let url = format!("{scheme}://{user}@127.0.0.1:{}/{name}", way.port);
        let store = SqlStore::open(&url).await.unwrap();
        let service = Service::on(store, None, Policy::Open, |_| {}).await;
        let body = json!({"name": "demo", "pull_secret": PULL_SECRET});
        let made = service.post("/v2/infra-envs", &body).await.expect(201);
        let path = format!("/v2/infra-envs/{}", made["id"].as_str().unwrap());

        for is_open in [false, true] {
            way.is_open.send_replace(is_open);
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
                    assert_eq!(answer.refused(503), "the database does not answer; try again");
                    assert_eq!(answer.header("retry-after"), Some("5"));
                }
            }
        }
        service.end().await;
        database.drop().await;
    });
}
