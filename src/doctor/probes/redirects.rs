//! Where a URL leads to.

use super::super::fault::Fault;
use super::super::report::{Check, quoted};
use super::super::session::{BOTH, Session};
use super::super::target::Target;
use super::super::wire::{Answer, Request};
use super::{Findings, Miss, PREFIX, Subject, Tried, check_range, range_request};

/// The redirects that are followed. Download programs give up between 10 and 50.
const MAX_REDIRECTS: usize = 10;

/// Where a URL has led to.
pub(super) struct Landing {
    /// Where it was redirected to, as it may be shown.
    pub(super) hops: Vec<String>,
    /// Where it ends, and what is there.
    pub(super) end: Option<(Target, Answer)>,
}

/// Follows a URL to its end.
pub(super) async fn follow(session: &Session, origin: &Target, findings: &mut Findings) -> Landing {
    let mut hops = Vec::new();
    let mut certificate = Vec::new();
    let mut scheme = Ok("no redirect from https to http".to_owned());
    let reached = walk(
        origin,
        async |target: &Target| {
            certificate = judge(session, target).await;
            session.exchange(target, &Request::new("GET", PREFIX)).await
        },
        |from, to| {
            hops.push(to.shown());
            if from.is_https() && !to.is_https() {
                scheme = Err(Miss::Fails("from https to http".to_owned()));
            }
        },
    )
    .await;
    findings.all(certificate);
    let (reachable, ends, end) = match reached {
        Ok(end) => (Ok("connected".to_owned()), Ok(format!("after {}", hops.len())), Some(end)),
        Err(Lost::Fault(fault)) => (Err(Miss::from(fault)), Ok(format!("after {}", hops.len())), None),
        Err(Lost::Redirect(why)) => (Ok("connected".to_owned()), Err(Miss::Fails(why)), None),
    };
    findings.add(Check::Reachable, reachable);
    if !hops.is_empty() || ends.is_err() {
        let count = hops.len();
        findings.add(Check::RedirectsEnd, ends);
        findings.add(Check::NotRedirected, Err(Miss::Fails(format!("redirected {count} times"))));
        findings.add(Check::RedirectScheme, scheme);
    }
    Landing { hops, end }
}

/// Why there is no end.
enum Lost {
    Fault(Fault),
    Redirect(String),
}

async fn walk(
    origin: &Target,
    mut ask: impl AsyncFnMut(&Target) -> Result<Answer, Fault>,
    mut told: impl FnMut(&Target, &Target),
) -> Result<(Target, Answer), Lost> {
    let mut target = origin.clone();
    for _ in 0..=MAX_REDIRECTS {
        let answer = ask(&target).await.map_err(Lost::Fault)?;
        if !answer.is_redirect() {
            return Ok((target, answer));
        }
        let location = answer.header("location");
        let location =
            location.ok_or_else(|| Lost::Redirect(format!("{} without Location", answer.status)))?;
        let next = target.join(location).map_err(|error| Lost::Redirect(quoted(&error.to_string())))?;
        told(&target, &next);
        target = next;
    }
    Err(Lost::Redirect(format!("more than {MAX_REDIRECTS} redirects")))
}

/// What the certificate of a server is worth.
async fn judge(session: &Session, target: &Target) -> Vec<(Check, Tried)> {
    if !target.is_https() {
        return Vec::new();
    }
    let Ok(shown) = session.look(target, &BOTH).await else { return Vec::new() };
    let judged = session.trust().judge(&shown, target.host());
    judged.into_iter().map(|(check, result)| (check, result.map_err(Miss::Fails))).collect()
}

/// Whether a request for a range gets there as well.
pub(super) async fn ranges(subject: &Subject<'_>, origin: &Target) -> Tried {
    let request = range_request(0, 1);
    let reached =
        walk(origin, async |target: &Target| subject.session.exchange(target, &request).await, |_, _| {})
            .await;
    match reached {
        Ok((_, answer)) => {
            check_range(&answer, 0, 1, subject.size)?;
            Ok("206 at the end".to_owned())
        }
        Err(Lost::Fault(fault)) => Err(fault.into()),
        Err(Lost::Redirect(why)) => Err(Miss::Fails(why)),
    }
}
