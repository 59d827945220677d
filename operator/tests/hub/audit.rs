//! Reads the requests that the API server has handled from its audit log.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Hub, users};

/// Maximum time until the audit log contains an entry.
const LIMIT: Duration = Duration::from_secs(60);

/// A request in the audit log. Requests by Kubernetes components are not logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditEntry {
    pub(crate) user: String,
    /// Verb of the request: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub(crate) verb: String,
    /// API group. Empty for core kinds.
    pub(crate) group: String,
    /// Plural name of the kind. For paths such as `/readyz`, this and the following members up to `name` are empty.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// HTTP status code of the response.
    pub(crate) code: u64,
    /// Path and query of the URL.
    pub(crate) uri: String,
}

/// A position in the audit log, after the entries of all requests that were complete when the mark was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditMark(u64);

impl Hub {
    /// Returns the current end of the audit log.
    pub(crate) async fn audit_mark(&self) -> AuditMark {
        self.flush_audit().await;
        self.end_of_audit()
    }

    /// Returns the matching entries since the start of the hub, in the order of the responses.
    pub(crate) async fn audit_entries(&self, filter: impl Fn(&AuditEntry) -> bool) -> Vec<AuditEntry> {
        self.audit_since(AuditMark(0), filter).await
    }

    /// Returns the matching entries after `mark`, in the order of the responses.
    pub(crate) async fn audit_since(
        &self,
        mark: AuditMark,
        filter: impl Fn(&AuditEntry) -> bool,
    ) -> Vec<AuditEntry> {
        self.flush_audit().await;
        self.read_audit(mark).into_iter().filter(filter).collect()
    }

    /// Waits for at least `count` matching entries after `mark`, and returns all matching entries.
    pub(crate) async fn wait_for_audit(
        &self,
        mark: AuditMark,
        count: usize,
        filter: impl Fn(&AuditEntry) -> bool,
    ) -> Vec<AuditEntry> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let entries: Vec<AuditEntry> = self.read_audit(mark).into_iter().filter(&filter).collect();
            if entries.len() >= count {
                return entries;
            }
            assert!(Instant::now() < deadline, "fewer than {count} entries in the audit log: {entries:#?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the entries after `mark`, and moves the mark after them.
    pub(crate) fn next_audit_entries(&self, mark: &mut AuditMark) -> Vec<AuditEntry> {
        let text = self.complete_lines(*mark);
        mark.0 += u64::try_from(text.len()).unwrap();
        entries(&text)
    }

    /// Waits until the entries of all complete requests are in the log. The server writes an entry only after its
    /// response.
    async fn flush_audit(&self) {
        let before = self.end_of_audit();
        let name = format!("marker-{}", self.next_number());
        let request = http::Request::get(format!("/api/v1/namespaces/{name}")).body(Vec::new()).unwrap();
        // The server refuses this request, but logs it. The log entry marks a position in the log.
        let _ = self.client_of_user(users::AUDIT_MARKER).request_text(request).await;
        let deadline = Instant::now() + LIMIT;
        while !self.read_all_audit(before).iter().any(|entry| entry.name == name) {
            assert!(Instant::now() < deadline, "the audit log has no entry of {name}");
            sleep(Duration::from_millis(20)).await;
        }
        // The server handles other connections in other threads, so their last entries may be a little late.
        sleep(Duration::from_millis(50)).await;
    }

    /// Returns the mark after the last complete line.
    fn end_of_audit(&self) -> AuditMark {
        let text = fs::read(self.folder().join("audit.log")).unwrap();
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        AuditMark(u64::try_from(end).unwrap())
    }

    fn read_audit(&self, mark: AuditMark) -> Vec<AuditEntry> {
        let mut entries = self.read_all_audit(mark);
        entries.retain(|entry| entry.user != users::AUDIT_MARKER);
        entries
    }

    fn read_all_audit(&self, mark: AuditMark) -> Vec<AuditEntry> {
        entries(&self.complete_lines(mark))
    }

    /// Returns the log text after `mark`, without an incomplete last line.
    fn complete_lines(&self, mark: AuditMark) -> String {
        let mut file = File::open(self.folder().join("audit.log")).unwrap();
        file.seek(SeekFrom::Start(mark.0)).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1));
        String::from_utf8(text).unwrap()
    }
}

fn entries(lines: &str) -> Vec<AuditEntry> {
    let mut ids = HashSet::new();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // A watch has two entries: one for its start and one for its end. Keep only the entry for the start.
    events
        .filter(|event| event["stage"] != "ResponseComplete" || event["verb"] != "watch" || has_failed(event))
        .filter(|event| ids.insert(event["auditID"].as_str().unwrap_or_default().to_owned()))
        .map(|event| AuditEntry::from_event(&event))
        .collect()
}

/// Returns `true` if the server refused the request. A refused watch has no entry for its start.
fn has_failed(event: &Value) -> bool {
    event["responseStatus"]["code"].as_u64() != Some(200)
}

impl AuditEntry {
    fn from_event(event: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        Self {
            user: text(&event["user"]["username"]),
            verb: text(&event["verb"]),
            group: text(&object["apiGroup"]),
            resource: text(&object["resource"]),
            subresource: text(&object["subresource"]),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            uri: text(&event["requestURI"]),
        }
    }
}
