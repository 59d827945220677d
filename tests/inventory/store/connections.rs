//! Connections to PostgreSQL whose requests are dropped, or whose server vanishes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kindling::inventory::event::EventQuery;
use kindling::inventory::store::{
    Changes, Filter, Kind, Outcome, PageQuery, ReportKind, ReportKinds, SqlStore, Step, Store,
};
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{new_cluster_key, new_row, on_postgres};

/// A proxy that delays the responses of a server, and can stop forwarding without closing connections.
struct SlowProxy {
    url: String,
    accepted: Arc<AtomicUsize>,
    /// Connections with a smaller number forward nothing.
    first_alive: watch::Sender<usize>,
}

impl SlowProxy {
    async fn start(url: &str, delay: Duration) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, name) = rest.split_once('/').unwrap();
        let (user, server) = authority.rsplit_once('@').unwrap_or(("", authority));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{user}@{}/{name}", listener.local_addr().unwrap());
        let (first_alive, alive) = watch::channel(0);
        let (server, accepted) = (server.to_owned(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = counter.fetch_add(1, Ordering::AcqRel);
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = TcpStream::connect(&server).await.unwrap().into_split();
                tokio::spawn(forward(from_client, to_server, Duration::ZERO, (number, alive.clone())));
                tokio::spawn(forward(from_server, to_client, delay, (number, alive.clone())));
            }
        });
        Self { url, accepted, first_alive }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Acquire)
    }

    /// Stops forwarding on all open connections. New connections work.
    fn freeze_open_connections(&self) {
        self.first_alive.send_replace(self.accepted());
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    delay: Duration,
    (number, mut alive): (usize, watch::Receiver<usize>),
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(len @ 1..) = from.read(&mut buffer).await else { return };
        sleep(delay).await;
        alive.wait_for(|first_alive| number >= *first_alive).await.unwrap();
        if to.write_all(&buffer[..len]).await.is_err() {
            return;
        }
    }
}

/// Returns the number of the database's sessions with an open transaction and no statement.
async fn count_open_transactions(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND state LIKE 'idle in transaction%'";
    let count = sqlx::query(query).fetch_one(&mut connection).await.unwrap().get(0);
    connection.close().await.unwrap();
    count
}

/// Each operation is dropped at many points, also while it waits for the response to `BEGIN`.
#[test]
fn dropped_operations_leave_no_transaction_open() {
    on_postgres(async |fixture| {
        fixture.commit_steps([Step::Insert(new_row(new_cluster_key()))]).await;
        let proxy = SlowProxy::start(&fixture.url, Duration::from_millis(2)).await;
        let store: Arc<dyn Store> = Arc::new(SqlStore::open(&proxy.url).await.unwrap());
        let query = EventQuery::default();
        let filter = Filter::all(Kind::Cluster);
        let page = PageQuery::first(filter).with_reports(ReportKinds::new(ReportKind::ALL));
        join_all((0..20).map(|_| store.count(filter))).await.into_iter().for_each(|count| {
            assert_eq!(count.unwrap(), 1);
        });
        let mut dropped = 0;
        for round in 0..60_u64 {
            // The last rounds all end before the server responds to the first statement. The pool may be busy after a
            // round.
            let wait = Duration::from_micros(if round < 40 { 300 * (round % 20) } else { 50 * (round % 20) });
            sleep(Duration::from_millis(20)).await;
            let key = new_cluster_key();
            let insert = Changes { steps: vec![Step::Insert(new_row(key))], events: Vec::new() };
            let keys = [key].into();
            let (one, two, three, four) = tokio::join!(
                timeout(wait, store.events(&query)),
                timeout(wait, store.page(page)),
                timeout(wait, store.commit(insert)),
                timeout(wait, store.reserve(&keys)),
            );
            for is_dropped in [one.is_err(), two.is_err(), three.is_err(), four.is_err()] {
                dropped += usize::from(is_dropped);
            }
        }
        assert!(dropped > 100, "{dropped}");
        let start = Instant::now();
        // Without the cleanup, the server ends open transactions after 30 seconds.
        while count_open_transactions(&fixture.url).await > 0 {
            assert!(start.elapsed() < Duration::from_secs(10), "a transaction stays open");
            sleep(Duration::from_millis(50)).await;
        }
        let count = store.list(filter).await.unwrap().len();
        let inserted = (0..20).map(|_| async {
            let steps = vec![Step::Insert(new_row(new_cluster_key()))];
            assert_eq!(store.commit(Changes { steps, events: Vec::new() }).await.unwrap(), Outcome::Done);
            store.page(page).await.unwrap();
        });
        join_all(inserted).await;
        assert_eq!(store.list(filter).await.unwrap().len(), count + 20);
        store.close().await;
    });
}

/// A server vanishes without closing its connections, and another server replaces it at the same address.
#[test]
fn connections_to_a_vanished_server_are_replaced() {
    on_postgres(async |fixture| {
        let proxy = SlowProxy::start(&fixture.url, Duration::from_millis(5)).await;
        let store: &dyn Store = &SqlStore::open(&proxy.url).await.unwrap();
        let count = || store.count(Filter::all(Kind::Cluster));
        // All connections of the pool are open, after one connection that migrated the tables and two connections of
        // the change feed.
        join_all((0..50).map(|_| count()))
            .await
            .into_iter()
            .for_each(|outcome| assert_eq!(outcome.unwrap(), 0));
        assert_eq!(proxy.accepted(), 13);
        proxy.freeze_open_connections();
        for outcome in join_all((0..10).map(|_| timeout(Duration::from_millis(200), count()))).await {
            assert!(outcome.is_err());
        }
        join_all((0..50).map(|_| count()))
            .await
            .into_iter()
            .for_each(|outcome| assert_eq!(outcome.unwrap(), 0));
        store.close().await;
    });
}
