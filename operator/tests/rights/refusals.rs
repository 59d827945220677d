//! Finds the requests that the API server refuses.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::hub::{AuditEntry, Hub};

/// The refused requests in the audit log. A task reads new entries of the log in the background.
pub(crate) struct Refusals {
    entries: watch::Receiver<Vec<AuditEntry>>,
    task: JoinHandle<()>,
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Refusals {
    pub(crate) async fn follow(hub: &'static Hub) -> Self {
        let mut mark = hub.audit_mark().await;
        let (sender, entries) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            loop {
                let mut refused = hub.next_audit_entries(&mut mark);
                refused.retain(|entry| entry.code == 403);
                if !refused.is_empty() {
                    sender.send_modify(|entries: &mut Vec<AuditEntry>| entries.append(&mut refused));
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        Self { entries, task }
    }

    /// Waits until at least one request of `user` is refused. Returns all refused requests of the user.
    pub(crate) async fn wait_for(&self, user: &str) -> Vec<AuditEntry> {
        let of_user = |entries: &Vec<AuditEntry>| entries.iter().any(|entry| entry.user == user);
        let mut entries = self.entries.clone();
        let entries = entries.wait_for(of_user).await.unwrap();
        entries.iter().filter(|entry| entry.user == user).cloned().collect()
    }
}
