//! Rules of a fault proxy: which requests get which fault.

use std::time::Duration;

use http::{Method, Uri};
use serde_json::{Value, json};

/// What a fault proxy does with a request instead of forwarding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Forwards the request after a delay.
    Delay(Duration),
    /// Closes the connection. The server does not get the request.
    CutBeforeRequest,
    /// Sends the request to the server, waits for the response, and closes the connection without a response.
    LoseResponse,
    /// Forwards the request, and closes the connection after a time. For watches.
    CutDuringResponse(Duration),
    /// Responds with 409, as after a change by another client.
    Conflict,
    /// Responds with 410, as to a list or watch from a resource version that the server no longer has.
    Gone,
    /// Responds with 200 to a watch, then with an event of type `ERROR` and code 410, and ends the watch.
    WatchGone,
    /// Responds with 200 to a watch, and ends it without an event.
    WatchEnd,
    /// Responds with 429 and a `Retry-After` in seconds.
    TooManyRequests(u32),
    /// Responds with 500.
    InternalError,
    /// Does not respond. The connection stays open. The server does not get the request.
    BlackHole,
    /// Sends the request to the server, and does not respond. The connection stays open.
    WithholdResponse,
    /// Sends the request to the server when the proxy releases it, also if the client has closed the connection.
    Hold,
}

/// A response without the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CannedResponse {
    pub(super) code: u16,
    pub(super) retry_after: Option<u32>,
    /// `Null`: no body.
    pub(super) body: Value,
}

impl Fault {
    /// Returns the response of a fault that has one.
    pub(super) fn canned_response(self) -> Option<CannedResponse> {
        if self == Self::WatchEnd {
            return Some(CannedResponse { code: 200, retry_after: None, body: Value::Null });
        }
        let (code, reason, message) = match self {
            Self::Conflict => (
                409,
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes to the \
                 latest version and try again",
            ),
            Self::Gone | Self::WatchGone => (410, "Expired", "too old resource version: 1 (2)"),
            Self::TooManyRequests(_) => {
                (429, "TooManyRequests", "the server has received too many requests; please try again later")
            }
            Self::InternalError => (500, "InternalError", "Internal error occurred: fault of the proxy"),
            _ => return None,
        };
        let retry_after = if let Self::TooManyRequests(seconds) = self { Some(seconds) } else { None };
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        });
        if let Some(seconds) = retry_after {
            status["details"] = json!({"retryAfterSeconds": seconds});
        }
        if self == Self::WatchGone {
            return Some(CannedResponse {
                code: 200,
                retry_after,
                body: json!({"type": "ERROR", "object": status}),
            });
        }
        Some(CannedResponse { code, retry_after, body: status })
    }
}

/// A fault for some of the requests through a fault proxy. Without conditions it is for all.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    fault: Fault,
    method: Option<Method>,
    path: String,
    is_watch: Option<bool>,
    filter: Option<fn(&Method, &Uri) -> bool>,
    skip: usize,
    times: usize,
}

impl Rule {
    /// Creates a rule for all requests.
    pub(crate) const fn new(fault: Fault) -> Self {
        Self {
            fault,
            method: None,
            path: String::new(),
            is_watch: None,
            filter: None,
            skip: 0,
            times: usize::MAX,
        }
    }

    /// Restricts the rule to a method.
    pub(crate) fn method(mut self, method: &str) -> Self {
        self.method = Some(method.parse().unwrap());
        self
    }

    /// Restricts the rule to requests whose path and query contain a text.
    pub(crate) fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path);
        self
    }

    /// Restricts the rule to watches, or to other requests.
    pub(crate) const fn watches(mut self, is_watch: bool) -> Self {
        self.is_watch = Some(is_watch);
        self
    }

    /// Restricts the rule to requests that fulfil a condition.
    pub(crate) const fn filter(mut self, filter: fn(&Method, &Uri) -> bool) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Forwards the first `count` requests that match.
    pub(crate) const fn skip(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Ends the rule after `count` faults.
    pub(crate) const fn times(mut self, count: usize) -> Self {
        self.times = count;
        self
    }

    fn matches(&self, method: &Method, uri: &Uri) -> bool {
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        self.method.as_ref().is_none_or(|own| own == method)
            && path.contains(&self.path)
            && self.is_watch.is_none_or(|own| own == is_watch(uri))
            && self.filter.is_none_or(|filter| filter(method, uri))
    }
}

/// Returns `true` for a watch.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

/// A rule of a fault proxy, for its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleId(usize);

/// A rule and its counts.
#[derive(Debug)]
struct ActiveRule {
    rule: Rule,
    is_removed: bool,
    counts: RuleCounts,
}

/// The requests that a rule has met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RuleCounts {
    /// Requests that match, with and without a fault.
    pub(crate) matches: usize,
    /// Requests that got the fault.
    pub(crate) faults: usize,
}

/// The rules of a fault proxy.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<ActiveRule>);

impl Rules {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.0.push(ActiveRule { rule, is_removed: false, counts: RuleCounts::default() });
        RuleId(self.0.len() - 1)
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        self.0[id.0].is_removed = true;
    }

    pub(super) fn remove_all(&mut self) {
        for active in &mut self.0 {
            active.is_removed = true;
        }
    }

    pub(super) fn counts(&self, id: RuleId) -> RuleCounts {
        self.0[id.0].counts
    }

    /// Returns the fault of the first rule that has one for this request. Each rule that matches counts the request.
    pub(super) fn fault_of(&mut self, method: &Method, uri: &Uri) -> Option<Fault> {
        let mut fault = None;
        for active in
            self.0.iter_mut().filter(|active| !active.is_removed && active.rule.matches(method, uri))
        {
            let ActiveRule { rule, counts, .. } = active;
            counts.matches += 1;
            if fault.is_none() && counts.matches > rule.skip && counts.faults < rule.times {
                counts.faults += 1;
                fault = Some(rule.fault);
            }
        }
        fault
    }
}
