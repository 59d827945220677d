//! What is tried, one file for each part of a server.

mod conditions;
mod connections;
mod content;
mod length;
mod ranges;
mod redirects;
mod url;

use super::fault::Fault;
use super::report::{Check, Content, Finding, Outcome, Report};
use super::session::{OLDER, Session};
use super::target::Target;
use super::wire::{Answer, End, Request};

/// How much of the beginning is read without ranges: all that the ranges around 64 KiB are compared with.
const PREFIX: usize = 192 << 10;

/// Why a check does not hold.
#[derive(Debug)]
enum Miss {
    /// It is not so.
    Fails(String),
    /// It could not be found out.
    Untried(String),
}

impl From<Fault> for Miss {
    fn from(fault: Fault) -> Self {
        if fault.is_untried() { Self::Untried(fault.to_string()) } else { Self::Fails(fault.to_string()) }
    }
}

impl From<String> for Miss {
    fn from(why: String) -> Self {
        Self::Fails(why)
    }
}

impl From<&str> for Miss {
    fn from(why: &str) -> Self {
        Self::Fails(why.to_owned())
    }
}

type Tried = Result<String, Miss>;

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: Check, tried: Tried) {
        let (outcome, detail) = match tried {
            Ok(detail) => (Outcome::Holds, detail),
            Err(Miss::Fails(detail)) => (Outcome::Fails, detail),
            Err(Miss::Untried(detail)) => (Outcome::Untried, detail),
        };
        self.0.push(Finding { check, outcome, detail });
    }

    fn all(&mut self, tried: impl IntoIterator<Item = (Check, Tried)>) {
        tried.into_iter().for_each(|(check, tried)| self.add(check, tried));
    }
}

/// An image on a server.
struct Subject<'a> {
    session: &'a Session,
    /// Where it is, after redirects.
    target: Target,
    /// The beginning of it, as a GET without a range gives it.
    whole: Answer,
    size: Option<u64>,
    content: Content,
}

impl Subject<'_> {
    async fn ask(&self, request: &Request) -> Result<Answer, Fault> {
        self.session.exchange(&self.target, request).await
    }

    /// The bytes of a range, which has to be within what there is.
    async fn range(&self, first: u64, len: u64) -> Result<Vec<u8>, Miss> {
        let answer = self.ask(&range_request(first, len)).await?;
        let judged = check_range(&answer, first, len, self.size);
        judged.map(|()| answer.body).map_err(Miss::Fails)
    }

    /// Bytes as the GET without a range gave them, if it gave that many.
    fn known(&self, first: u64, len: u64) -> Option<&[u8]> {
        let first = usize::try_from(first).ok()?;
        self.whole.body.get(first..first.checked_add(usize::try_from(len).ok()?)?)
    }

    fn required_size(&self) -> Result<u64, Miss> {
        match self.size {
            Some(0) => Err(Miss::Fails("there are no bytes".to_owned())),
            Some(size) => Ok(size),
            None => Err(Miss::Fails("the server does not say how many bytes there are".to_owned())),
        }
    }
}

fn range_request(first: u64, len: u64) -> Request {
    let last = first.saturating_add(len).saturating_sub(1);
    // One byte more than there should be: too long an answer is seen as such.
    let limit = usize::try_from(len).unwrap_or(PREFIX).min(PREFIX).saturating_add(1);
    Request::new("GET", limit).with("Range", format!("bytes={first}-{last}"))
}

/// Makes sure that an answer is the range that was asked for.
fn check_range(answer: &Answer, first: u64, len: u64, size: Option<u64>) -> Result<(), String> {
    match answer.status {
        206 => {}
        200 => return Err("answered with 200 and the whole file in the place of 206".to_owned()),
        status => return Err(format!("answered with {status} in the place of 206")),
    }
    let last = first.saturating_add(len).saturating_sub(1);
    let found = answer.header("content-range").unwrap_or_default();
    let expected = match size {
        Some(size) => format!("bytes {first}-{last}/{size}"),
        None => format!("bytes {first}-{last}/"),
    };
    let is_it = if size.is_some() { found == expected } else { found.starts_with(&expected) };
    if !is_it {
        return Err(format!(
            "Content-Range is {:?}, and {expected:?} was asked for",
            super::report::quoted(found)
        ));
    }
    check_body(answer, len)
}

/// Makes sure that a body has as many bytes as it should.
fn check_body(answer: &Answer, len: u64) -> Result<(), String> {
    let have = answer.body.len();
    let is_all = u64::try_from(have).is_ok_and(|have| have == len);
    match answer.content_length() {
        Some(said) if said != len => Err(format!("Content-Length is {said}, and {len} bytes were asked for")),
        _ if answer.end == End::Short => {
            Err(format!("the connection was closed after {have} of {len} bytes"))
        }
        _ if !is_all => Err(format!("the body has {have} bytes or more, and {len} were asked for")),
        _ => Ok(()),
    }
}

/// Tries everything.
pub(super) async fn run(session: &Session, origin: &Target) -> Report {
    let mut findings = Findings::default();
    findings.all(url::all(origin));
    let mut report = Report {
        url: origin.shown(),
        redirects: Vec::new(),
        size: None,
        content: None,
        findings: Vec::new(),
        clients: Vec::new(),
    };
    let landing = redirects::follow(session, origin, &mut findings).await;
    report.redirects = landing.hops;
    if let Some((target, whole)) = landing.end {
        let content = content::sniff(&whole.body);
        let mut subject = Subject { session, target, whole, size: None, content };
        examine(&mut subject, &mut findings).await;
        if !report.redirects.is_empty() {
            findings.add(Check::RedirectRanges, redirects::ranges(&subject, origin).await);
        }
        report.size = subject.size;
        report.content = (subject.whole.status == 200).then_some(subject.content);
    }
    findings.0.sort_by_key(|finding| Check::ALL.iter().position(|check| *check == finding.check));
    report.findings = findings.0;
    report
}

async fn examine(subject: &mut Subject<'_>, findings: &mut Findings) {
    if subject.target.is_https() {
        let older = subject.session.look(&subject.target, &OLDER).await;
        findings.add(Check::Tls12, older.map(|_| "taken".to_owned()).map_err(Miss::from));
    }
    findings.all(length::answer(subject));
    if subject.whole.status != 200 {
        return;
    }
    let heads = length::heads(subject).await;
    subject.size = heads.size;
    findings.all(heads.tried);
    findings.all(length::all(subject).await);
    findings.all(content::all(subject));
    findings.all(ranges::all(subject).await);
    findings.all(conditions::all(subject).await);
    findings.all(connections::all(subject).await);
}
