//! The requests and checks of an examination. Each module contains the checks of one area.

mod conditions;
mod connections;
mod content;
mod length;
mod ranges;
mod redirects;
mod service;
mod url;

use super::fault::RequestFault;
use super::report::{CheckOutcome, ContentKind, DoctorCheck, DoctorFinding, DoctorReport};
use super::session::{DoctorSession, OLDER};
use super::target::TargetUrl;
use super::wire::{BodyEnd, WireRequest, WireResponse};

/// Number of bytes to read from the start of the image without a range. It covers the ranges around 64 KiB, which are
/// compared with these bytes.
const PREFIX: usize = 192 << 10;

#[derive(Debug)]
enum CheckFailure {
    /// The server does not pass the check.
    Fails(String),
    /// The check could not be run.
    Untried(String),
}

impl From<RequestFault> for CheckFailure {
    fn from(fault: RequestFault) -> Self {
        if fault.is_unsent() { Self::Untried(fault.to_string()) } else { Self::Fails(fault.to_string()) }
    }
}

impl From<String> for CheckFailure {
    fn from(why: String) -> Self {
        Self::Fails(why)
    }
}

impl From<&str> for CheckFailure {
    fn from(why: &str) -> Self {
        Self::Fails(why.to_owned())
    }
}

type CheckResult = Result<String, CheckFailure>;

/// The image under examination.
struct ProbedImage<'a> {
    session: &'a DoctorSession,
    /// The URL after all redirects.
    target: TargetUrl,
    /// The response to a GET without a range, with the start of the image.
    whole: WireResponse,
    size: Option<u64>,
    content: ContentKind,
}

impl ProbedImage<'_> {
    async fn send(&self, request: &WireRequest) -> Result<WireResponse, RequestFault> {
        self.session.exchange(&self.target, request).await
    }

    /// Reads a range, which must be inside the image.
    async fn read_range(&self, first: u64, len: u64) -> Result<Vec<u8>, CheckFailure> {
        let response = self.send(&range_request(first, len)).await?;
        let result = check_range(&response, first, len, self.size);
        result.map(|()| response.body).map_err(CheckFailure::Fails)
    }

    /// Returns bytes from the GET without a range. Returns `None` if it did not read all of them.
    fn known_bytes(&self, first: u64, len: u64) -> Option<&[u8]> {
        let first = usize::try_from(first).ok()?;
        self.whole.body.get(first..first.checked_add(usize::try_from(len).ok()?)?)
    }

    fn required_size(&self) -> Result<u64, CheckFailure> {
        match self.size {
            Some(0) => Err(CheckFailure::Fails("the file is empty".to_owned())),
            Some(size) => Ok(size),
            None => Err(CheckFailure::Fails("the server does not report the size of the file".to_owned())),
        }
    }
}

fn range_request(first: u64, len: u64) -> WireRequest {
    let last = first.saturating_add(len).saturating_sub(1);
    // Read one byte more than expected, to detect a response that is too long.
    let limit = usize::try_from(len).unwrap_or(PREFIX).min(PREFIX).saturating_add(1);
    WireRequest::new("GET", limit).with_header("Range", format!("bytes={first}-{last}"))
}

/// Returns an error if the response does not contain exactly the requested range.
fn check_range(response: &WireResponse, first: u64, len: u64, size: Option<u64>) -> Result<(), String> {
    match response.status {
        206 => {}
        200 => return Err("status is 200 with the whole file instead of 206".to_owned()),
        status => return Err(format!("status is {status} instead of 206")),
    }
    let last = first.saturating_add(len).saturating_sub(1);
    let content_range = response.header("content-range").unwrap_or_default();
    let expected = match size {
        Some(size) => format!("bytes {first}-{last}/{size}"),
        None => format!("bytes {first}-{last}/"),
    };
    let is_match =
        if size.is_some() { content_range == expected } else { content_range.starts_with(&expected) };
    if !is_match {
        return Err(format!(
            "Content-Range is {:?}, expected {expected:?}",
            super::report::quote_for_report(content_range)
        ));
    }
    check_body(response, len)
}

/// Returns an error if the body is not `len` bytes long.
fn check_body(response: &WireResponse, len: u64) -> Result<(), String> {
    let have = response.body.len();
    let is_all = u64::try_from(have).is_ok_and(|have| have == len);
    match response.content_length() {
        Some(content_length) if content_length != len => {
            Err(format!("Content-Length is {content_length}, expected {len}"))
        }
        _ if response.end == BodyEnd::Short => {
            Err(format!("the server closed the connection after {have} of {len} bytes"))
        }
        _ if !is_all => Err(format!("the body has at least {have} bytes, expected {len}")),
        _ => Ok(()),
    }
}

/// Examines a URL with all probes.
pub(super) async fn run(session: &DoctorSession, origin: &TargetUrl) -> DoctorReport {
    let mut report = DoctorReport::new(origin.redacted_url());
    report.add_findings(url::probe_url(origin));
    if let Some((target, whole)) = redirects::follow_redirects(session, origin, &mut report).await {
        let content = content::content_by_signature(&whole.body);
        let mut subject = ProbedImage { session, target, whole, size: None, content };
        run_probes(&mut subject, &mut report).await;
        if !report.redirects.is_empty() {
            report.add_finding(
                DoctorCheck::RedirectRanges,
                redirects::check_range_redirect(&subject, origin).await,
            );
        }
        report.size = subject.size;
        report.content = (subject.whole.status == 200).then_some(subject.content);
    }
    report.findings.sort_by_key(|finding| DoctorCheck::ALL.iter().position(|check| *check == finding.check));
    report
}

impl DoctorReport {
    fn new(url: String) -> Self {
        let (redirects, findings, clients) = (Vec::new(), Vec::new(), Vec::new());
        Self { url, redirects, size: None, content: None, findings, clients }
    }

    fn add_finding(&mut self, check: DoctorCheck, tried: CheckResult) {
        let (outcome, detail) = match tried {
            Ok(detail) => (CheckOutcome::Holds, detail),
            Err(CheckFailure::Fails(detail)) => (CheckOutcome::Fails, detail),
            Err(CheckFailure::Untried(detail)) => (CheckOutcome::Untried, detail),
        };
        self.findings.push(DoctorFinding { check, outcome, detail });
    }

    fn add_findings(&mut self, tried: impl IntoIterator<Item = (DoctorCheck, CheckResult)>) {
        tried.into_iter().for_each(|(check, tried)| self.add_finding(check, tried));
    }
}

async fn run_probes(subject: &mut ProbedImage<'_>, report: &mut DoctorReport) {
    if subject.target.is_https() {
        let older = subject.session.read_handshake(&subject.target, &OLDER).await;
        report.add_finding(
            DoctorCheck::Tls12,
            older.map(|_| "accepted".to_owned()).map_err(CheckFailure::from),
        );
    }
    report.add_findings(length::probe_get_response(subject));
    if subject.whole.status != 200 {
        return;
    }
    let heads = length::probe_head(subject).await;
    subject.size = heads.size;
    report.add_findings(heads.tried);
    report.add_findings(length::probe_body_length(subject).await);
    report.add_findings(content::probe_content(subject));
    report.add_findings(ranges::probe_ranges(subject).await);
    report.add_findings(conditions::probe_conditions(subject).await);
    report.add_findings(connections::probe_connections(subject).await);
    report.add_findings(service::probe_service(subject).await);
}
