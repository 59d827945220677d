//! Receives changes by other replicas through PostgreSQL's LISTEN and NOTIFY.
//!
//! Notifications arrive over a separate connection. A periodic check compares the cached records with the database, and
//! finally sends a notification to this process itself, a ping. PostgreSQL delivers notifications in the order of
//! commits. So when the ping arrives, the notifications of all changes visible to the check must have arrived too. If a
//! record differed and no notification has arrived for it, a notification was lost.
//!
//! Pings may never arrive, for example if a connection pooler in front of the server does not forward notifications.
//! The contact is then [`Contact::Polling`], and caches query the database again.

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

/// The notification channel shared by all replicas with one database.
const CHANNEL: &str = "kindling_changes";
/// The application name of the connection, which database administrators see.
const APPLICATION: &str = "kindling changes";
/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Time limit for a check, and for the arrival of its ping.
const CHECK_PATIENCE: Duration = Duration::from_secs(3);
/// Time limit for establishing a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);
/// Pause between attempts to connect.
const RETRY: Duration = Duration::from_millis(250);

/// Returns a statement that sends a notification when its transaction commits.
pub(in crate::store) fn notify(payload: String) -> Statement {
    Statement::new("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload)
}

/// The task that listens for notifications. Aborted on drop.
#[derive(Debug)]
pub(in crate::store) struct ListenerTask(JoinHandle<()>);

impl Drop for ListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ListenerTask {
    /// Starts listening. Returns when notifications arrive or the first attempt has failed.
    pub(in crate::store) async fn start(feed: &Feed, options: PgConnectOptions) -> Self {
        feed.0.contact.record_response();
        feed.0.contact.set(Contact::Reconnecting);
        let task = Self(tokio::spawn(listen(feed.clone(), options.application_name(APPLICATION))));
        if feed.settled_contact(CHECK_PATIENCE).await != Contact::Connected {
            tracing::warn!("the database sends no notifications; changes of other replicas are polled");
        }
        task
    }
}

/// Listens forever, with a new connection after each failure.
async fn listen(feed: Feed, options: PgConnectOptions) {
    let mut is_first = true;
    loop {
        match NotificationListener::connect(&feed, &options).await {
            Ok(mut listener) => {
                // If the first attempt to connect succeeds, subscribers cannot have missed events.
                listener.is_gap = !is_first;
                let Err(failure) = listener.run().await;
                if failure.is_lost() {
                    let error = &failure as &dyn std::error::Error;
                    tracing::warn!(error, "connection for notifications lost");
                    // If an outage is already known, the contact stays unchanged.
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

/// The reason why a connection has stopped listening.
#[derive(Debug, thiserror::Error)]
enum ListenFailure {
    #[error("the check of the tables took more than {CHECK_PATIENCE:?}")]
    Late,
    #[error(transparent)]
    Failed(#[from] sqlx::Error),
}

impl ListenFailure {
    /// Returns `true` if the connection was lost. Otherwise the connection works, but the tables cannot be read.
    fn is_lost(&self) -> bool {
        matches!(self, Self::Failed(error) if is_unreachable(error))
    }
}

/// Sets the contact after a check that could not read the tables. Logs only the first failure.
fn report_unusable(feed: &Feed, failure: &ListenFailure) {
    if feed.contact() != Contact::Unusable {
        let error = failure as &dyn std::error::Error;
        tracing::error!(error, "the tables of the database cannot be read, serving known images, retrying");
        feed.0.contact.set(Contact::Unusable);
    }
}

/// The reason why a connection attempt failed.
#[derive(Debug, thiserror::Error)]
enum ConnectFailure {
    #[error("no response in time")]
    Late,
    #[error("cannot connect")]
    Refused(#[source] sqlx::Error),
}

impl ConnectFailure {
    /// Returns the contact after the failure. If the server has too many connections, the pool's connections may still
    /// work.
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

/// Sets the contact after a failed connection attempt. Logs only changes to the contact, because attempts are frequent.
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

/// A connection that listens for notifications.
struct NotificationListener<'a> {
    feed: &'a Feed,
    connection: PgListener,
    /// The number of the pending ping, and the time when it was sent.
    ping: Option<(u64, Instant)>,
    /// Records whose cached copy differed from the database, until the notification of the change arrives.
    unexplained: BTreeSet<Key>,
    /// Whether notifications may have been lost, so that subscribers need a resync.
    is_gap: bool,
}

impl<'a> NotificationListener<'a> {
    async fn connect(feed: &'a Feed, options: &PgConnectOptions) -> Result<Self, ConnectFailure> {
        // A lazy pool hides the reason why it cannot connect, so this first connection determines the reason.
        let probe = timeout(CONNECT_PATIENCE, options.connect()).await;
        let probe = probe.map_err(|_| ConnectFailure::Late)?.map_err(ConnectFailure::Refused)?;
        // The test has succeeded, so an error while closing its connection does no harm.
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

    /// Publishes changes until the connection fails.
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
        let is_late = self.ping.is_some_and(|(_, sent_at)| sent_at.elapsed() >= CHECK_PATIENCE);
        if is_late && self.feed.contact() != Contact::Polling {
            tracing::warn!(
                "notifications of the database do not arrive; changes of other replicas are polled"
            );
            self.feed.0.contact.set(Contact::Polling);
            self.is_gap = true;
        }
        let checked = timeout(CHECK_PATIENCE, self.check()).await;
        checked.map_err(|_| ListenFailure::Late)??;
        self.feed.0.contact.record_response();
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
        // A pending ping is not replaced, because its delay is measured.
        self.ping.get_or_insert((header.sequence, Instant::now()));
        for (key, generation) in cached {
            self.publish_if_stale((key, generation), current.get(&key).copied());
        }
        Ok(())
    }

    /// Publishes a change if a cached record differs from the database.
    fn publish_if_stale(&mut self, (key, cached): (Key, i64), current: Option<i64>) {
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
        self.feed.0.contact.record_response();
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
        // This process has already published its own changes record by record.
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

    /// Handles the arrival of a ping. All notifications sent before the ping have arrived, so an unexplained difference
    /// means that a notification was lost.
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

    /// Publishes a resync, because events may have been lost.
    fn close_gap(&mut self) {
        self.is_gap = false;
        self.unexplained.clear();
        self.feed.publish_resync();
    }
}
