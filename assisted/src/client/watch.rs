//! Changes to hosts over time, detected by polling.
//!
//! The API has no notifications, so a watch lists the hosts at intervals and compares each list with the previous one.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{self, Stream, StreamExt};

use super::transport::BoxFuture;
use super::{ApiClient, ClientError};
use crate::host::Host;
use crate::id::{HostId, InfraEnvId};

/// Default time between two requests. Agents check in once a minute, or more often while the service has steps for
/// them.
const INTERVAL: Duration = Duration::from_secs(5);
/// Minimum initial pause before a retry.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Default maximum pause before a retry.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

type Changes = dyn Stream<Item = Result<HostChange, ClientError>> + Send;
type Sleep = dyn Fn(Duration) -> BoxFuture<()> + Send + Sync;

/// Settings of [`ApiClient::watch_hosts`] and [`ApiClient::wait_for_host`].
///
/// With the feature `reqwest`, the default is `WatchOptions::new(tokio::time::sleep)`.
#[derive(Clone)]
#[must_use = "options do nothing until a watch uses them"]
pub struct WatchOptions {
    interval: Duration,
    max_backoff: Duration,
    sleep: Arc<Sleep>,
}

impl WatchOptions {
    /// Returns the default settings. `sleep` is the sleep function of the program's async runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use assisted::client::WatchOptions;
    ///
    /// let options = WatchOptions::new(tokio::time::sleep).interval(Duration::from_secs(10));
    /// ```
    pub fn new<F>(sleep: impl Fn(Duration) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let sleep: Arc<Sleep> = Arc::new(move |time| Box::pin(sleep(time)));
        Self { interval: INTERVAL, max_backoff: MAX_BACKOFF, sleep }
    }

    /// Sets the time between two requests. Default: 5 seconds.
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Sets the maximum pause before a retry after a temporary error. The first pause is as long as the interval, but
    /// at least 1 second. Each further error doubles the pause. If the service requests a longer pause with
    /// `Retry-After`, the client uses the longer pause. Default: 1 minute.
    pub fn max_backoff(self, max_backoff: Duration) -> Self {
        Self { max_backoff, ..self }
    }

    /// Returns the pause before the next retry, and increments `failures`.
    fn backoff(&self, failures: &mut u32, error: &ClientError) -> Duration {
        let first = self.interval.max(MIN_BACKOFF);
        let doubled = 2_u32.checked_pow(*failures).and_then(|factor| first.checked_mul(factor));
        *failures = failures.saturating_add(1);
        let backoff = doubled.map_or(self.max_backoff, |time| time.min(self.max_backoff));
        backoff.max(self.interval).max(error.retry_after().unwrap_or_default())
    }
}

#[cfg(feature = "reqwest")]
impl Default for WatchOptions {
    fn default() -> Self {
        Self::new(tokio::time::sleep)
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchOptions")
            .field("interval", &self.interval)
            .field("max_backoff", &self.max_backoff)
            .finish_non_exhaustive()
    }
}

/// A change to the hosts of an infra-env.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostChange {
    /// A new host, or a host that existed before the watch started.
    Added(Arc<Host>),
    /// A host that changed. Changes to only its check-in and update times are not reported.
    Changed(Arc<Host>),
    /// The last state of a deleted host.
    Removed(Arc<Host>),
}

impl HostChange {
    /// Returns the new state of the host, or the last state of a deleted host.
    #[must_use]
    pub fn host(&self) -> &Host {
        match self {
            Self::Added(host) | Self::Changed(host) | Self::Removed(host) => host,
        }
    }
}

/// A stream of changes to the hosts of an infra-env, returned by [`ApiClient::watch_hosts`]. It ends after an error.
// The mutex makes the type `Sync`. It is never locked.
pub struct HostWatch(Mutex<Pin<Box<Changes>>>);

impl HostWatch {
    /// Waits for the next change. Returns `None` after the stream has returned an error.
    ///
    /// This method is cancel-safe: the next call continues where the cancelled call stopped.
    ///
    /// # Errors
    ///
    /// Returns an error if the hosts cannot be listed and a retry cannot help.
    pub async fn next(&mut self) -> Option<Result<HostChange, ClientError>> {
        StreamExt::next(self).await
    }
}

impl Stream for HostWatch {
    type Item = Result<HostChange, ClientError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let changes = self.get_mut().0.get_mut().unwrap_or_else(PoisonError::into_inner);
        changes.as_mut().poll_next(context)
    }
}

impl fmt::Debug for HostWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostWatch").finish_non_exhaustive()
    }
}

impl ApiClient {
    /// Returns a stream of changes to the hosts of an infra-env. The stream starts with an addition for each existing
    /// host.
    ///
    /// The client lists the hosts once per interval, so it misses changes that are undone within an interval. The
    /// watch keeps the last state of each host in memory. After an error for which [`ClientError::is_retryable`]
    /// returns `true`, the client retries after a growing pause, and the stream does not return the error. Any other
    /// error ends the stream.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::InfraEnvId;
    /// use assisted::client::{HostChange, WatchOptions};
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId) -> Result<(), ClientError> {
    /// let mut changes = client.watch_hosts(infra_env, WatchOptions::new(tokio::time::sleep));
    /// while let Some(change) = changes.next().await {
    ///     match change? {
    ///         HostChange::Added(host) | HostChange::Changed(host) => println!("{} is {}", host.id, host.status),
    ///         HostChange::Removed(host) => println!("{} is removed", host.id),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a watch does nothing until it is read"]
    pub fn watch_hosts(&self, infra_env: InfraEnvId, options: WatchOptions) -> HostWatch {
        let watcher = Watcher {
            client: self.clone(),
            infra_env,
            options,
            hosts: BTreeMap::new(),
            changes: VecDeque::new(),
            failures: 0,
            pause: Some(Duration::ZERO),
        };
        HostWatch(Mutex::new(Box::pin(stream::unfold(watcher, Watcher::next).fuse())))
    }

    /// Waits until a host meets a condition, and returns the host. Retries temporary errors like
    /// [`ApiClient::watch_hosts`].
    ///
    /// # Errors
    ///
    /// Returns [`ClientError::WaitTimeout`] if the host does not meet the condition within `timeout`. Returns another
    /// error if the host cannot be read and a retry cannot help, for example because the host does not exist.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use std::time::Duration;
    ///
    /// use assisted::client::WatchOptions;
    /// use assisted::host::HostStatus;
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let options = WatchOptions::new(tokio::time::sleep);
    /// let is_installed = |host: &assisted::host::Host| host.status == HostStatus::Installed;
    /// let hour = Duration::from_secs(3600);
    /// let host = client.wait_for_host((infra_env, host), is_installed, hour, &options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_host(
        &self,
        (infra_env, host): (InfraEnvId, HostId),
        mut condition: impl FnMut(&Host) -> bool,
        timeout: Duration,
        options: &WatchOptions,
    ) -> Result<Host, ClientError> {
        let last_error = Mutex::new(None);
        let set_last_error = |error| *last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        let wait = pin!(async {
            let mut failures = 0;
            loop {
                let pause = match self.get_host(infra_env, host).await {
                    Ok(host) if condition(&host) => return Ok(host),
                    Ok(_) => {
                        failures = 0;
                        set_last_error(None);
                        options.interval
                    }
                    Err(error) if error.is_retryable() => {
                        let backoff = options.backoff(&mut failures, &error);
                        set_last_error(Some(Box::new(error)));
                        backoff
                    }
                    Err(error) => return Err(error),
                };
                (options.sleep)(pause).await;
            }
        });
        let outcome = select(wait, (options.sleep)(timeout)).await;
        match outcome {
            Either::Left((result, _)) => result,
            Either::Right(_) => {
                let source = last_error.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(ClientError::WaitTimeout { timeout, source })
            }
        }
    }
}

struct Watcher {
    client: ApiClient,
    infra_env: InfraEnvId,
    options: WatchOptions,
    hosts: BTreeMap<HostId, Arc<Host>>,
    /// Changes to return before the next list.
    changes: VecDeque<HostChange>,
    failures: u32,
    /// Time to wait before the next list. `None` after an error that ends the stream.
    pause: Option<Duration>,
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<HostChange, ClientError>, Self)> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Some((Ok(change), self));
            }
            let pause = self.pause.take()?;
            if !pause.is_zero() {
                (self.options.sleep)(pause).await;
            }
            match self.list().await {
                Ok(hosts) => {
                    self.failures = 0;
                    self.pause = Some(self.options.interval);
                    self.compare(hosts);
                }
                Err(error) if error.is_retryable() => {
                    self.pause = Some(self.options.backoff(&mut self.failures, &error));
                }
                Err(error) => return Some((Err(error), self)),
            }
        }
    }

    async fn list(&self) -> Result<BTreeMap<HostId, Arc<Host>>, ClientError> {
        let mut hosts = BTreeMap::new();
        let add = |host: Host| {
            hosts.insert(host.id, Arc::new(host));
            ControlFlow::Continue(())
        };
        self.client.visit_hosts(self.infra_env, add).await?;
        Ok(hosts)
    }

    fn compare(&mut self, hosts: BTreeMap<HostId, Arc<Host>>) {
        let mut old_hosts = mem::replace(&mut self.hosts, hosts);
        for (id, host) in &self.hosts {
            match old_hosts.remove(id) {
                Some(old) if is_same(&old, host) => {}
                Some(_) => self.changes.push_back(HostChange::Changed(Arc::clone(host))),
                None => self.changes.push_back(HostChange::Added(Arc::clone(host))),
            }
        }
        self.changes.extend(old_hosts.into_values().map(HostChange::Removed));
    }
}

/// Returns `true` if the states are equal except for the check-in and update times.
fn is_same(old: &Host, new: &Host) -> bool {
    let Host { checked_in_at, timestamp, updated_at, .. } = *old;
    *old == *new || *old == Host { checked_in_at, timestamp, updated_at, ..new.clone() }
}
