//! The changes of other replicas, from PostgreSQL's LISTEN and NOTIFY.
//!
//! A separate connection listens. PostgreSQL delivers notifications in the order of commits, so every check ends with
//! a notification to itself, a ping: when it arrives, all notifications of changes that the check could see must have
//! arrived too. A check compares the cached records with the database. A difference without a notification is a lost
//! one.
//!
//! If pings do not arrive (a connection pool between this process and the server may not pass on notifications), the
//! contact is [`Contact::Polling`], and caches ask the database again.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions};
use sqlx::{Acquire as _, ConnectOptions as _, Connection as _};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use uuid::Uuid;

use super::message::{self, MessageContent, MessageHeader};
use super::{ChangeKind, Contact, Feed, RecordChange};
use crate::store::failure::{is_unreachable, sql_state};
use crate::store::session::{Session as _, Statement};
use crate::store::statements::records;
use crate::store::{Key, Kind};

/// The channel of all replicas with one database.
const CHANNEL: &str = "kindling_changes";
/// The name of the connection, for administrators of the database.
const APPLICATION: &str = "kindling changes";
/// Time between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The time limit of a check, and of the wait for its ping.
const CHECK_PATIENCE: Duration = Duration::from_secs(3);
/// The time limit for a new connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(250);

/// Returns a statement that sends a notification when its transaction commits.
pub(in crate::store) fn notify(payload: String) -> Statement {
    Statement::new("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload)
}

/// The task that listens. It ends when this is dropped.
#[derive(Debug)]
pub(in crate::store) struct ListenerTask(JoinHandle<()>);

impl Drop for ListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ListenerTask {
    /// Starts to listen. Returns when notifications arrive, or when they cannot for now.
    pub(in crate::store) async fn start(feed: &Feed, options: PgConnectOptions) -> Self {
        feed.0.contact.record_answer();
        feed.0.contact.set(Contact::Reconnecting);
        let task = Self(tokio::spawn(listen(feed.clone(), options.application_name(APPLICATION))));
        if feed.settled_contact(CHECK_PATIENCE).await != Contact::Connected {
            tracing::warn!("the database sends no notifications; changes of other replicas are polled");
        }
        task
    }
}

/// Listens for ever, over one connection after another.
async fn listen(feed: Feed, options: PgConnectOptions) {
    let mut is_first = true;
    loop {
        match NotificationListener::connect(&feed, &options).await {
            Ok(mut listener) => {
                // A subscriber from before the first connection has lost nothing.
                listener.is_gap = !is_first;
                let Err(failure) = listener.run().await;
                if failure.is_lost() {
                    let error = &failure as &dyn std::error::Error;
                    tracing::warn!(error, "connection for notifications lost");
                    // An outage that is known already is not in doubt again.
                    if matches!(feed.contact(), Contact::Connected | Contact::Polling) {
                        feed.0.contact.set(Contact::Reconnecting);
                    }
                } else {
                    report_unusable(&feed, &failure);
                    sleep(RETRY).await;
                }
            }
            Err(failure) => {
                report_failure(&feed, &failure);
                sleep(RETRY).await;
            }
        }
        is_first = false;
    }
}

/// Why a connection no longer listens.
#[derive(Debug, thiserror::Error)]
enum ListenFailure {
    #[error("the check of the tables took more than {CHECK_PATIENCE:?}")]
    Late,
    #[error(transparent)]
    Failed(#[from] sqlx::Error),
}

impl ListenFailure {
    /// Returns `true` if the connection has ended. Otherwise the tables cannot be read.
    fn is_lost(&self) -> bool {
        matches!(self, Self::Failed(error) if is_unreachable(error))
    }
}

/// Sets the contact after a check that could not read the tables. Logs only the first one.
fn report_unusable(feed: &Feed, failure: &ListenFailure) {
    if feed.contact() != Contact::Unusable {
        let error = failure as &dyn std::error::Error;
        tracing::error!(error, "the tables of the database cannot be read, serving known images, retrying");
        feed.0.contact.set(Contact::Unusable);
    }
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
enum ConnectFailure {
    #[error("no answer in time")]
    Late,
    #[error("cannot connect")]
    Refused(#[source] sqlx::Error),
}

impl ConnectFailure {
    /// Reports whether the database is away. If it has too many connections, those of the pool may still work.
    fn contact(&self) -> Contact {
        match self {
            Self::Refused(error)
                if !is_unreachable(error) || sql_state(error).as_deref() == Some("53300") =>
            {
                Contact::Polling
            }
            _ => Contact::Unreachable,
        }
    }
}

/// Sets the contact after a failed attempt. Logs only changes, because attempts are frequent.
fn report_failure(feed: &Feed, failure: &ConnectFailure) {
    let contact = failure.contact();
    if feed.contact() == contact {
        return;
    }
    let error = failure as &dyn std::error::Error;
    match contact {
        Contact::Unreachable => tracing::error!(error, "database unreachable, retrying"),
        _ => tracing::warn!(error, "cannot listen for notifications, retrying"),
    }
    feed.0.contact.set(contact);
}

/// A connection that listens.
struct NotificationListener<'a> {
    feed: &'a Feed,
    connection: PgListener,
    /// The number of the ping that has not arrived yet, with the time when it was sent.
    ping: Option<(u64, Instant)>,
    /// Differences from the database that no notification has explained yet.
    unexplained: BTreeSet<Key>,
    /// Whether notifications may have been lost before this connection listened.
    is_gap: bool,
}

impl<'a> NotificationListener<'a> {
    async fn connect(feed: &'a Feed, options: &PgConnectOptions) -> Result<Self, ConnectFailure> {
        // The pool below hides why it cannot connect.
        let probe = timeout(CONNECT_PATIENCE, options.connect()).await;
        let probe = probe.map_err(|_| ConnectFailure::Late)?.map_err(ConnectFailure::Refused)?;
        // The connection has served its purpose.
        let _ = probe.close().await;
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(CONNECT_PATIENCE)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(options.clone());
        let connection = PgListener::connect_with(&pool).await;
        let mut connection = connection.map_err(ConnectFailure::Refused)?;
        connection.eager_reconnect(false);
        let listening = timeout(CONNECT_PATIENCE, connection.listen(CHANNEL)).await;
        listening.map_err(|_| ConnectFailure::Late)?.map_err(ConnectFailure::Refused)?;
        feed.0.contact.begin_listening();
        if feed.contact() == Contact::Unreachable {
            feed.0.contact.set(Contact::Polling);
        }
        Ok(Self { feed, connection, ping: None, unexplained: BTreeSet::new(), is_gap: false })
    }

    /// Reports changes until the connection fails.
    async fn run(&mut self) -> Result<Infallible, ListenFailure> {
        let mut checks = interval_at(Instant::now(), CHECK_INTERVAL);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let received = tokio::select! {
                received = self.connection.try_recv() => received?,
                _ = checks.tick() => {
                    self.check_in_time().await?;
                    continue;
                }
            };
            let lost = || sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
            self.receive(&received.ok_or_else(lost)?);
        }
    }

    async fn check_in_time(&mut self) -> Result<(), ListenFailure> {
        let is_late = self.ping.is_some_and(|(_, sent)| sent.elapsed() >= CHECK_PATIENCE);
        if is_late && self.feed.contact() != Contact::Polling {
            tracing::warn!(
                "notifications of the database do not arrive; changes of other replicas are polled"
            );
            self.feed.0.contact.set(Contact::Polling);
            self.is_gap = true;
        }
        let checked = timeout(CHECK_PATIENCE, self.check()).await;
        checked.map_err(|_| ListenFailure::Late)??;
        self.feed.0.contact.record_answer();
        Ok(())
    }

    /// Compares the cached records with the database, and sends a ping.
    async fn check(&mut self) -> Result<(), sqlx::Error> {
        let mut cached = BTreeMap::new();
        for cache in self.feed.caches() {
            cached.extend(cache.cached());
        }
        let mut ids: BTreeMap<(Kind, Option<Uuid>), Vec<String>> = BTreeMap::new();
        for key in cached.keys() {
            ids.entry((key.kind, key.parent)).or_default().push(key.id.to_string());
        }
        let connection = self.connection.acquire().await?;
        let mut current = BTreeMap::new();
        for (siblings, ids) in ids {
            current.extend(records::generations(connection, siblings, &ids).await?);
        }
        let header = MessageHeader {
            origin: self.feed.0.origin,
            sequence: self.feed.next_sequence(),
            micros: self.feed.clock_micros(),
        };
        connection.has_row(notify(header.ping())).await?;
        // A ping that is under way is not replaced: its delay counts.
        self.ping.get_or_insert((header.sequence, Instant::now()));
        for (key, generation) in cached {
            self.compare((key, generation), current.get(&key).copied());
        }
        Ok(())
    }

    /// Reports a cached record that differs from the database.
    fn compare(&mut self, (key, cached): (Key, i64), current: Option<i64>) {
        if current == Some(cached) {
            return;
        }
        let kind = if current.is_some() { ChangeKind::Written } else { ChangeKind::Removed };
        self.feed.0.metrics.add_repair();
        self.feed.publish(&[RecordChange { key, generation: current.unwrap_or(cached), kind }]);
        self.unexplained.insert(key);
    }

    fn receive(&mut self, notification: &PgNotification) {
        if notification.channel() != CHANNEL {
            return;
        }
        self.feed.0.contact.record_answer();
        let Some((header, content)) = message::parse(notification.payload()) else {
            tracing::warn!("unknown notification on channel {CHANNEL}");
            return;
        };
        let is_own = header.origin == self.feed.0.origin;
        if is_own {
            let lag = self.feed.clock_micros().saturating_sub(header.micros);
            self.feed.0.metrics.record_lag(Duration::from_micros(lag));
        }
        match content {
            MessageContent::Ping if is_own => self.receive_ping(header.sequence),
            MessageContent::Ping => {}
            MessageContent::Changes(changes) => self.receive_changes(header, &changes, is_own),
            MessageContent::Resync => self.receive_large_change(header, is_own),
        }
    }

    fn receive_large_change(&mut self, header: MessageHeader, is_own: bool) {
        // An own change was reported record by record.
        if is_own && !self.feed.take_unknown(header.sequence) {
            self.unexplained.clear();
            return;
        }
        self.feed.caches().iter().for_each(|cache| cache.drop_all());
        self.close_gap();
    }

    fn receive_changes(&mut self, header: MessageHeader, changes: &[RecordChange], is_own: bool) {
        for change in changes {
            self.unexplained.remove(&change.key);
        }
        if is_own {
            self.feed.publish_notified(header.sequence, changes);
        } else {
            self.feed.0.metrics.add_notification();
            self.feed.publish(changes);
        }
    }

    /// All notifications from before the ping have arrived.
    fn receive_ping(&mut self, sequence: u64) {
        if self.ping.is_none_or(|(awaited, _)| awaited != sequence) {
            return;
        }
        self.ping = None;
        let is_lost = !std::mem::take(&mut self.unexplained).is_empty();
        if is_lost && !self.is_gap {
            tracing::warn!("a notification of the database was lost");
        }
        if is_lost || self.is_gap {
            self.close_gap();
        }
        if self.feed.contact() != Contact::Connected {
            tracing::info!("listening for changes of other replicas");
            self.feed.0.contact.set(Contact::Connected);
        }
    }

    /// Reports that events were lost.
    fn close_gap(&mut self) {
        self.is_gap = false;
        self.unexplained.clear();
        self.feed.publish_resync();
    }
}
