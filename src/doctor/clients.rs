//! What each kind of client needs.
//!
//! A need is of a check: where that fails, the client refuses the URL, or there is a remark. What is said without "likely" or
//! "some" is from the client's documentation or from how it is known to ask; firmware differs, and where only some of it is
//! known to refuse, the words say so.

use super::report::{Check, Client, ClientReport, Content, Outcome, Reason, Report, Verdict, Weight};

/// A check, how much it matters to a client, and what the client does where it fails.
type Need = (Check, Weight, &'static str);

use Weight::{Refuses, Remark};

/// What all need who read over the network.
const ALL: &[Need] = &[
    (Check::Reachable, Refuses, "it cannot reach the server"),
    (Check::RedirectsEnd, Refuses, "it never gets to a file"),
    (Check::Answers, Refuses, "it gets no file"),
    (Check::Complete, Refuses, "it gets a part of the file alone"),
    (Check::Identity, Refuses, "it takes the bytes as they come, and these are packed"),
    (Check::SameBytes, Refuses, "what it reads in several requests does not fit together"),
];

/// What those need who check certificates.
const CERTIFICATE: &[Need] = &[
    (
        Check::CertificateTrusted,
        Refuses,
        "it does not know the authority, unless that is added or the check turned off",
    ),
    (
        Check::CertificateName,
        Refuses,
        "the certificate is that of another host, unless the check is turned off",
    ),
    (Check::CertificateDates, Refuses, "the certificate is not valid, unless the check is turned off"),
    (Check::CertificateLasts, Remark, "it will refuse the certificate soon"),
];

/// What those need who read an image in pieces.
const PIECES: &[Need] = &[
    (Check::Head, Refuses, "it asks with HEAD how large the image is"),
    (Check::HeadLength, Refuses, "it asks with HEAD how large the image is"),
    (Check::Range, Refuses, "it reads the image in ranges"),
    (Check::Range64k, Refuses, "it reads the image in ranges of such lengths"),
    (Check::Concurrent, Refuses, "it reads several ranges at once"),
];

const BMC: &[Need] = &[
    (Check::UrlShort, Refuses, "firmware exists that takes 255 characters at most"),
    (Check::UrlSuffix, Refuses, "it takes names of media alone"),
    (Check::UrlWithoutQuery, Refuses, "firmware exists that takes no query"),
    (Check::UrlWithoutPassword, Refuses, "user and password have fields of their own"),
    (Check::UrlWithoutToken, Remark, "it keeps the URL, and shows it to whoever may see its settings"),
    (
        Check::UrlUsualPort,
        Remark,
        "some, likely, take no port, and networks of BMCs often let none but 80 and 443 through",
    ),
    (Check::UrlAddress, Remark, "it needs a name server of its own for the name"),
    (Check::UrlUnencrypted, Remark, "it checks the certificate or not, by a setting of its own; some cannot"),
    (Check::NotRedirected, Refuses, "firmware exists that follows no redirect"),
    (Check::RedirectRanges, Refuses, "it reads the image in ranges"),
    (Check::Length, Refuses, "it needs to know how large the image is"),
    (Check::NotChunked, Refuses, "it needs to know how large the image is"),
    (Check::HeadSame, Remark, "it may take the image for another one"),
    (Check::AcceptRanges, Remark, "some, likely, ask for no ranges then"),
    (Check::RangeBehindEnd, Remark, "some, likely, read on behind the end"),
    (Check::KeepAlive, Remark, "thousands of ranges take a connection each"),
    (Check::FirstByte, Remark, "it may give up before"),
    (Check::MediaType, Remark, "some, likely, go by the type"),
    (Check::Tls12, Remark, "older ones have no TLS 1.3"),
];

const IPXE: &[Need] = &[
    (
        Check::UrlUnencrypted,
        Remark,
        "it has to be built with HTTPS, and trusts none but the authorities that are built in or signed by iPXE's",
    ),
    (Check::Tls12, Refuses, "it has no TLS 1.3"),
    (Check::CertificateRsa, Remark, "its documentation has no keys but those of RSA"),
    (Check::UrlWithoutToken, Remark, "the URL goes through DHCP or scripts that others can read"),
    (Check::RedirectScheme, Remark, "anybody may change what comes then"),
    (Check::HeaderForm, Refuses, "it takes no header without a space behind the colon"),
    (Check::Length, Remark, "it shows no progress, and takes the end of the connection for that of the file"),
    (Check::UrlAddress, Remark, "it needs a name server from DHCP"),
];

/// What iPXE needs for an image that it boots as a disk (`sanboot`).
const IPXE_DISK: &[Need] = &[
    (Check::Head, Refuses, "sanboot asks with HEAD how large the image is"),
    (Check::HeadLength, Refuses, "sanboot asks with HEAD how large the image is"),
    (Check::Range, Refuses, "sanboot reads the image in ranges"),
    (Check::KeepAlive, Remark, "each range takes a connection"),
];

const UEFI: &[Need] = &[
    (Check::UefiType, Refuses, "neither type nor suffix tell it what to do with the file"),
    (
        Check::Length,
        Remark,
        "it reads all of the file to know how long it is; boot loaders that go on from there, likely, refuse",
    ),
    (Check::HeadLength, Remark, "it asks with HEAD first, and has to read all of the file once more without"),
    (Check::NotRedirected, Remark, "older firmware, likely, follows no redirect"),
    (
        Check::UrlEncrypted,
        Remark,
        "EDK II takes plain http where its vendor has allowed it (PcdAllowHttpConnections)",
    ),
    (Check::UrlUnencrypted, Remark, "the authority has to be enrolled in the firmware's TLS settings"),
    (Check::Tls12, Remark, "older firmware has no TLS 1.3"),
    (Check::UrlAddress, Remark, "it needs a name server from DHCP"),
];

const QEMU: &[Need] = &[
    (Check::AcceptRanges, Refuses, "it opens nothing without Accept-Ranges: bytes"),
    (Check::FirstByte, Refuses, "it waits five seconds, unless told otherwise"),
    (Check::NotChunked, Remark, "it needs lengths"),
];

const DOWNLOAD: &[Need] = &[
    (Check::Length, Remark, "a download that was cut off looks complete"),
    (Check::Validator, Remark, "it goes on with another image without noticing"),
    (Check::RangeOpen, Remark, "a download that was cut off begins anew"),
    (Check::IfRange, Remark, "it may go on with another image"),
    (Check::IdentityWhenAsked, Remark, "browsers know neither length nor progress of what is packed"),
    (Check::MediaType, Remark, "browsers show it in the place of saving it"),
    (Check::RedirectScheme, Remark, "anybody may change what comes then"),
];

const ROOTFS: &[Need] = &[
    (Check::Head, Refuses, "it sends HEAD until that is answered, and goes on only after 200"),
    (Check::FirstByte, Remark, "machines wait for it in the middle of their boot"),
    (Check::UrlAddress, Remark, "the machine needs a name server before it has a root file system"),
];

/// What a kind of client needs of a URL with such content.
fn needs(client: Client, content: Option<&Content>) -> Vec<&'static [Need]> {
    match client {
        Client::Bmc => vec![ALL, CERTIFICATE, PIECES, BMC],
        Client::Ipxe => match content {
            Some(Content::Iso { .. } | Content::Disk) => vec![ALL, CERTIFICATE, IPXE, IPXE_DISK],
            _ => vec![ALL, CERTIFICATE, IPXE],
        },
        Client::Uefi => vec![ALL, CERTIFICATE, UEFI],
        Client::Qemu => vec![ALL, CERTIFICATE, PIECES, QEMU],
        Client::Download => vec![ALL, CERTIFICATE, DOWNLOAD],
        // It takes any certificate: what it fetches is held against a digest.
        Client::Rootfs => vec![ALL, ROOTFS],
    }
}

/// Whether a kind of client has a use for such content at all.
fn is_for(client: Client, content: &Content) -> bool {
    match client {
        Client::Bmc | Client::Qemu => matches!(content, Content::Iso { .. } | Content::Disk),
        Client::Ipxe | Client::Download => true,
        Client::Uefi => matches!(content, Content::Iso { .. } | Content::Disk | Content::EfiProgram),
        Client::Rootfs => matches!(content, Content::Archive { .. }),
    }
}

/// What the findings mean for each kind of client.
pub(super) fn judge(report: &Report) -> Vec<ClientReport> {
    Client::ALL.into_iter().map(|client| judge_for(client, report)).collect()
}

fn judge_for(client: Client, report: &Report) -> ClientReport {
    let content = report.content.as_ref();
    let boots = report.finding(Check::Content).is_none_or(|finding| finding.outcome == Outcome::Holds);
    // What boots nowhere is no image for another client, but a wrong one.
    if boots && content.is_some_and(|content| !is_for(client, content)) {
        return ClientReport { client, verdict: Verdict::NotForIt, reasons: Vec::new() };
    }
    let content_need: Need = match client {
        Client::Download => (Check::Content, Remark, "what it saves is no image"),
        _ => (Check::Content, Refuses, "there is nothing to boot"),
    };
    let mut reasons = Vec::new();
    let mut is_unknown = false;
    for (check, weight, why) in needs(client, content).into_iter().flatten().copied().chain([content_need]) {
        let Some(finding) = report.finding(check) else { continue };
        match finding.outcome {
            Outcome::Holds => {}
            Outcome::Untried => is_unknown |= weight == Refuses,
            Outcome::Fails => {
                reasons.push(Reason { check, weight, why, detail: finding.detail.clone() });
            }
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    let verdict = match reasons.first().map(|reason| reason.weight) {
        Some(Refuses) => Verdict::Refuses,
        _ if is_unknown => Verdict::Unknown,
        Some(Remark) => Verdict::WorksWithRemark,
        None => Verdict::Works,
    };
    ClientReport { client, verdict, reasons }
}

#[cfg(test)]
mod tests {
    use super::super::report::Finding;
    use super::*;

    fn report(failed: &[(Check, Outcome)], content: Content) -> Report {
        let finding = |(check, outcome): &(Check, Outcome)| Finding {
            check: *check,
            outcome: *outcome,
            detail: String::new(),
        };
        Report {
            url: String::new(),
            redirects: Vec::new(),
            size: None,
            content: Some(content),
            findings: failed.iter().map(finding).collect(),
            clients: Vec::new(),
        }
    }

    fn iso() -> Content {
        Content::Iso { volume: String::new(), has_boot_record: true }
    }

    /// Nobody needs a check twice with different words, and each check that only says something is one that is known.
    #[test]
    fn needs_are_told_once() {
        for client in Client::ALL {
            let all: Vec<Check> =
                needs(client, Some(&iso())).into_iter().flatten().map(|(check, ..)| *check).collect();
            for (index, check) in all.iter().enumerate() {
                assert!(
                    !all.iter().skip(index + 1).any(|other| other == check),
                    "{}: {check}",
                    client.name()
                );
            }
        }
        let needed = |check: &Check| {
            let all = Client::ALL.into_iter().flat_map(|client| needs(client, Some(&iso())));
            all.flatten().any(|(needed, ..)| needed == check)
        };
        let told: Vec<&str> =
            Check::ALL.iter().filter(|check| !needed(check)).map(|check| check.name()).collect();
        assert_eq!(told, ["range-suffix", "range-many", "if-none-match", "http-1.0", "expect", "content"]);
    }

    #[test]
    fn each_need_makes_its_clients_refuse() {
        for client in Client::ALL {
            let content = if client == Client::Rootfs {
                Content::Archive { packing: super::super::report::Packing::Cpio }
            } else {
                iso()
            };
            assert_eq!(judge_for(client, &report(&[], content.clone())).verdict, Verdict::Works);
            for (check, weight, _) in needs(client, Some(&content)).into_iter().flatten() {
                for outcome in [Outcome::Fails, Outcome::Untried] {
                    let expected = match (weight, outcome) {
                        (Refuses, Outcome::Fails) => Verdict::Refuses,
                        (Refuses, _) => Verdict::Unknown,
                        (Remark, Outcome::Fails) => Verdict::WorksWithRemark,
                        (Remark, _) => Verdict::Works,
                    };
                    let found = judge_for(client, &report(&[(*check, outcome)], content.clone()));
                    assert_eq!(found.verdict, expected, "{}: {check}", client.name());
                }
            }
        }
    }

    #[test]
    fn a_wrong_file_is_not_one_for_others() {
        let script = report(&[(Check::Content, Outcome::Holds)], Content::IpxeScript);
        assert_eq!(judge_for(Client::Bmc, &script).verdict, Verdict::NotForIt);
        assert_eq!(judge_for(Client::Ipxe, &script).verdict, Verdict::Works);
        let page = report(&[(Check::Content, Outcome::Fails)], Content::Page);
        assert_eq!(judge_for(Client::Bmc, &page).verdict, Verdict::Refuses);
        assert_eq!(judge_for(Client::Download, &page).verdict, Verdict::WorksWithRemark);
    }
}
