//! Follows the redirects of an image URL, and checks whether clients can follow them too.

use super::super::fault::RequestFault;
use super::super::report::{DoctorCheck, quote_for_report};
use super::super::session::{BOTH, DoctorSession};
use super::super::target::TargetUrl;
use super::super::wire::{WireRequest, WireResponse};
use super::{CheckFailure, CheckResult, DoctorReport, PREFIX, ProbedImage, check_range, range_request};

/// Maximum number of redirects to follow. Download programs stop after 10 to 50.
const MAX_REDIRECTS: usize = 10;

/// Follows the redirects of a URL, and reports each. Returns the last URL and the response to it.
pub(super) async fn follow_redirects(
    session: &DoctorSession,
    origin: &TargetUrl,
    report: &mut DoctorReport,
) -> Option<(TargetUrl, WireResponse)> {
    let mut hops = Vec::new();
    let mut certificate = Vec::new();
    let mut scheme = Ok("no redirect from https to http".to_owned());
    let reached = walk_redirects(
        origin,
        async |target: &TargetUrl| {
            certificate = check_server_certificate(session, target).await;
            session.exchange(target, &WireRequest::new("GET", PREFIX)).await
        },
        |from, to| {
            hops.push(to.redacted_url());
            if from.is_https() && !to.is_https() {
                scheme = Err(CheckFailure::Fails("from https to http".to_owned()));
            }
        },
    )
    .await;
    report.add_findings(certificate);
    let (reachable, ends, end) = match reached {
        Ok(end) => (Ok("connected".to_owned()), Ok(format!("after {}", hops.len())), Some(end)),
        Err(RedirectError::Fault(fault)) => {
            (Err(CheckFailure::from(fault)), Ok(format!("after {}", hops.len())), None)
        }
        Err(RedirectError::Redirect(why)) => {
            (Ok("connected".to_owned()), Err(CheckFailure::Fails(why)), None)
        }
    };
    report.add_finding(DoctorCheck::Reachable, reachable);
    if !hops.is_empty() || ends.is_err() {
        let count = hops.len();
        report.add_finding(DoctorCheck::RedirectsEnd, ends);
        report.add_finding(
            DoctorCheck::NotRedirected,
            Err(CheckFailure::Fails(format!("redirected {count} times"))),
        );
        report.add_finding(DoctorCheck::RedirectScheme, scheme);
    }
    report.redirects = hops;
    end
}

/// Why the redirects cannot be followed to their end.
enum RedirectError {
    Fault(RequestFault),
    Redirect(String),
}

async fn walk_redirects(
    origin: &TargetUrl,
    mut ask: impl AsyncFnMut(&TargetUrl) -> Result<WireResponse, RequestFault>,
    mut on_redirect: impl FnMut(&TargetUrl, &TargetUrl),
) -> Result<(TargetUrl, WireResponse), RedirectError> {
    let mut target = origin.clone();
    for _ in 0..=MAX_REDIRECTS {
        let response = ask(&target).await.map_err(RedirectError::Fault)?;
        if !response.is_redirect() {
            return Ok((target, response));
        }
        let location = response.header("location");
        let location = location
            .ok_or_else(|| RedirectError::Redirect(format!("{} without Location", response.status)))?;
        let next = target
            .join(location)
            .map_err(|error| RedirectError::Redirect(quote_for_report(&error.to_string())))?;
        on_redirect(&target, &next);
        target = next;
    }
    Err(RedirectError::Redirect(format!("more than {MAX_REDIRECTS} redirects")))
}

/// Checks the certificate of a server, if the URL uses https.
async fn check_server_certificate(
    session: &DoctorSession,
    target: &TargetUrl,
) -> Vec<(DoctorCheck, CheckResult)> {
    if !target.is_https() {
        return Vec::new();
    }
    let Ok(handshake) = session.read_handshake(target, &BOTH).await else { return Vec::new() };
    let results = session.trusted_authorities().check_certificate(&handshake, target.host());
    results.into_iter().map(|(check, result)| (check, result.map_err(CheckFailure::Fails))).collect()
}

/// Checks that a range request is redirected to the image, too.
pub(super) async fn check_range_redirect(subject: &ProbedImage<'_>, origin: &TargetUrl) -> CheckResult {
    let request = range_request(0, 1);
    let result = walk_redirects(
        origin,
        async |target: &TargetUrl| subject.session.exchange(target, &request).await,
        |_, _| {},
    )
    .await;
    match result {
        Ok((_, response)) => {
            check_range(&response, 0, 1, subject.size)?;
            Ok("206 at the end".to_owned())
        }
        Err(RedirectError::Fault(fault)) => Err(fault.into()),
        Err(RedirectError::Redirect(why)) => Err(CheckFailure::Fails(why)),
    }
}
