//! The rules of a fault proxy, which select the fault for each request.

use std::time::Duration;

use http::{Method, Uri};
use serde_json::{Value, json};

/// The treatment of a request by the fault proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Forward the request after a delay.
    Delay(Duration),
    /// Close the connection without forwarding the request.
    CutBeforeRequest,
    /// Forward the request, wait for the response, and close the connection without sending the response.
    LoseResponse,
    /// Forward the request, and close the connection after a time. Useful for watches.
    CutDuringResponse(Duration),
    /// Respond with 409, as after a change by another client.
    Conflict,
    /// Respond with 410, as for a list or watch from a resource version that the server has discarded.
    Gone,
    /// Respond to a watch with 200 and an event of type `ERROR` with code 410, and end the watch.
    WatchGone,
    /// Respond to a watch with 200, and end it without an event.
    WatchEnd,
    /// Respond with 429 and a `Retry-After` header in seconds.
    TooManyRequests(u32),
    /// Respond with 500.
    InternalError,
    /// Do not forward the request and do not respond. The connection stays open.
    BlackHole,
    /// Forward the request, but do not respond. The connection stays open.
    WithholdResponse,
    /// Forward the request only when the proxy releases it, even if the client has closed the connection.
    Hold,
}

/// A response that the proxy creates itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CannedResponse {
    pub(super) code: u16,
    pub(super) retry_after: Option<u32>,
    /// JSON body. `Null` means no body.
    pub(super) body: Value,
}

impl Fault {
    /// Returns the proxy's own response for a fault, or `None` if the fault has no such response.
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

/// A fault for matching requests through a fault proxy. Without conditions, it matches all requests.
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
    /// Creates a rule that matches all requests.
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

    /// Restricts the rule to requests with a method.
    pub(crate) fn method(mut self, method: &str) -> Self {
        self.method = Some(method.parse().unwrap());
        self
    }

    /// Restricts the rule to requests whose path or query contains `part`.
    pub(crate) fn path(mut self, part: &str) -> Self {
        part.clone_into(&mut self.path);
        self
    }

    /// Restricts the rule to watches if `is_watch` is `true`, and to other requests otherwise.
    pub(crate) const fn watches(mut self, is_watch: bool) -> Self {
        self.is_watch = Some(is_watch);
        self
    }

    /// Restricts the rule to requests for which `filter` returns `true`.
    pub(crate) const fn filter(mut self, filter: fn(&Method, &Uri) -> bool) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Forwards the first `count` matching requests without a fault.
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

pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1"))
}

/// The identifier of a rule of a fault proxy, used to query the rule's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleId(usize);

/// A rule, and its counts so far.
#[derive(Debug)]
struct ActiveRule {
    rule: Rule,
    is_removed: bool,
    counts: RuleCounts,
}

/// Counts of the requests that matched a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RuleCounts {
    /// Number of matching requests, with or without a fault.
    pub(crate) matches: usize,
    /// Number of requests with the fault.
    pub(crate) faults: usize,
}

/// The rules of a fault proxy, in the order in which they were added.
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

    /// Returns the fault for a request, from the first rule that has one. Every matching rule counts the request.
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
