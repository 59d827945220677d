//! Defines the requirements of each kind of client, and derives the verdicts from the results of the checks.
//!
//! Each requirement refers to a check. If the check fails, the client refuses the URL, or the report contains a remark.
//! Texts without "likely" or "some" are based on the documentation of the client or on its observed requests. Firmware
//! differs: if only some firmware is known to refuse a URL, the text mentions it.

use super::report::{
    CheckOutcome, ClientKind, ClientReport, ClientVerdict, ContentKind, DoctorCheck, DoctorReport,
    RequirementLevel, VerdictReason,
};

/// A check, its weight for a client, and the consequence for the client if it fails.
type Requirement = (DoctorCheck, RequirementLevel, &'static str);

use RequirementLevel::{Refuses, Remark};

/// Requirements of all clients.
const ALL: &[Requirement] = &[
    (DoctorCheck::Reachable, Refuses, "it cannot reach the server"),
    (DoctorCheck::RedirectsEnd, Refuses, "redirects do not lead it to a file"),
    (DoctorCheck::Answers, Refuses, "it receives no file"),
    (DoctorCheck::Complete, Refuses, "it receives only a part of the file"),
    (DoctorCheck::Identity, Refuses, "it does not decompress responses"),
    (DoctorCheck::SameBytes, Refuses, "bytes from different requests do not match"),
    (DoctorCheck::ServiceUrl, Remark, "machines that boot the image do not register with its service"),
];

/// Requirements of clients that verify certificates.
const CERTIFICATE: &[Requirement] = &[
    (
        DoctorCheck::CertificateTrusted,
        Refuses,
        "it does not trust the CA, unless the CA is added or verification is turned off",
    ),
    (
        DoctorCheck::CertificateName,
        Refuses,
        "it refuses a certificate of another host, unless verification is turned off",
    ),
    (
        DoctorCheck::CertificateDates,
        Refuses,
        "it refuses an invalid certificate, unless verification is turned off",
    ),
    (DoctorCheck::CertificateLasts, Remark, "it will refuse the certificate soon"),
];

/// Requirements of clients that read an image in ranges.
const PIECES: &[Requirement] = &[
    (DoctorCheck::Head, Refuses, "it sends HEAD to get the size of the image"),
    (DoctorCheck::HeadLength, Refuses, "it sends HEAD to get the size of the image"),
    (DoctorCheck::Range, Refuses, "it reads the image in ranges"),
    (DoctorCheck::Range64k, Refuses, "it reads the image in ranges of these lengths"),
    (DoctorCheck::Concurrent, Refuses, "it reads several ranges concurrently"),
];

const BMC: &[Requirement] = &[
    (DoctorCheck::UrlShort, Refuses, "some firmware accepts at most 255 characters"),
    (DoctorCheck::UrlSuffix, Refuses, "the URL must end in .iso or .img"),
    (DoctorCheck::UrlWithoutQuery, Refuses, "some firmware does not accept a query"),
    (DoctorCheck::UrlWithoutPassword, Refuses, "it has separate settings for user name and password"),
    (
        DoctorCheck::UrlWithoutToken,
        Remark,
        "it stores the URL, and shows it to every user who can read its settings",
    ),
    (
        DoctorCheck::UrlUsualPort,
        Remark,
        "some probably reject URLs with a port, and networks of BMCs often allow only ports 80 and 443",
    ),
    (DoctorCheck::UrlAddress, Remark, "the BMC needs a name server to resolve the name"),
    (
        DoctorCheck::UrlUnencrypted,
        Remark,
        "a setting decides whether it verifies the certificate; some cannot verify it",
    ),
    (DoctorCheck::NotRedirected, Refuses, "some firmware does not follow redirects"),
    (DoctorCheck::RedirectRanges, Refuses, "it reads the image in ranges"),
    (DoctorCheck::Length, Refuses, "it needs the size of the image"),
    (DoctorCheck::NotChunked, Refuses, "it needs the size of the image"),
    (DoctorCheck::HeadSame, Remark, "it may treat the image as changed"),
    (DoctorCheck::AcceptRanges, Remark, "some probably send no range requests without this header"),
    (DoctorCheck::RangeBehindEnd, Remark, "some probably read past the end"),
    (DoctorCheck::KeepAlive, Remark, "each of thousands of ranges needs a new connection"),
    (DoctorCheck::FirstByte, Remark, "it may time out before the first byte arrives"),
    (DoctorCheck::MediaType, Remark, "some probably depend on the type"),
    (DoctorCheck::Tls12, Remark, "older firmware does not support TLS 1.3"),
];

const IPXE: &[Requirement] = &[
    (
        DoctorCheck::UrlUnencrypted,
        Remark,
        "it must be built with HTTPS, and only trusts built-in CAs and CAs signed by iPXE's CA",
    ),
    (DoctorCheck::Tls12, Refuses, "it does not support TLS 1.3"),
    (DoctorCheck::CertificateRsa, Remark, "its documentation mentions only RSA keys"),
    (DoctorCheck::UrlWithoutToken, Remark, "the URL goes through DHCP or scripts that others can read"),
    (DoctorCheck::RedirectScheme, Remark, "anyone on the network can change the response"),
    (DoctorCheck::HeaderForm, Refuses, "it ignores headers without a space after the colon"),
    (
        DoctorCheck::Length,
        Remark,
        "it shows no progress, and takes the end of the connection for the end of the file",
    ),
    (DoctorCheck::UrlAddress, Remark, "it needs a name server from DHCP"),
];

/// Requirements of iPXE for an image that it boots as a disk (`sanboot`).
const IPXE_DISK: &[Requirement] = &[
    (DoctorCheck::Head, Refuses, "sanboot sends HEAD to get the size of the image"),
    (DoctorCheck::HeadLength, Refuses, "sanboot sends HEAD to get the size of the image"),
    (DoctorCheck::Range, Refuses, "sanboot reads the image in ranges"),
    (DoctorCheck::KeepAlive, Remark, "each range needs a new connection"),
];

const UEFI: &[Requirement] = &[
    (DoctorCheck::UefiType, Refuses, "neither media type nor suffix identify the type of the file"),
    (
        DoctorCheck::Length,
        Remark,
        "it reads the whole file to get its size; later boot loaders likely refuse it",
    ),
    (
        DoctorCheck::HeadLength,
        Remark,
        "it sends HEAD first, and must read the whole file twice without a size",
    ),
    (DoctorCheck::NotRedirected, Remark, "older firmware likely does not follow redirects"),
    (
        DoctorCheck::UrlEncrypted,
        Remark,
        "EDK II accepts plain http only if its vendor allows it (PcdAllowHttpConnections)",
    ),
    (DoctorCheck::UrlUnencrypted, Remark, "the CA must be enrolled in the firmware's TLS settings"),
    (DoctorCheck::Tls12, Remark, "older firmware does not support TLS 1.3"),
    (DoctorCheck::UrlAddress, Remark, "it needs a name server from DHCP"),
];

const QEMU: &[Requirement] = &[
    (DoctorCheck::AcceptRanges, Refuses, "it requires Accept-Ranges: bytes"),
    (DoctorCheck::FirstByte, Refuses, "its default timeout is five seconds"),
    (DoctorCheck::NotChunked, Remark, "it needs the length of responses"),
];

const DOWNLOAD: &[Requirement] = &[
    (DoctorCheck::Length, Remark, "an interrupted download looks complete"),
    (DoctorCheck::Validator, Remark, "it may resume with another image, undetected"),
    (DoctorCheck::RangeOpen, Remark, "an interrupted download starts over"),
    (DoctorCheck::IfRange, Remark, "it may resume with another image"),
    (
        DoctorCheck::IdentityWhenAsked,
        Remark,
        "browsers show neither size nor progress of compressed responses",
    ),
    (DoctorCheck::MediaType, Remark, "browsers display the file instead of saving it"),
    (DoctorCheck::RedirectScheme, Remark, "anyone on the network can change the response"),
];

const ROOTFS: &[Requirement] = &[
    (DoctorCheck::Head, Refuses, "it repeats HEAD until it gets a response, and continues only after 200"),
    (DoctorCheck::FirstByte, Remark, "machines wait for it during boot"),
    (DoctorCheck::UrlAddress, Remark, "the machine needs a name server before it has a root file system"),
];

/// Returns the requirements of a kind of client for a URL with this content.
fn requirements(client: ClientKind, content: Option<&ContentKind>) -> Vec<&'static [Requirement]> {
    match client {
        ClientKind::Bmc => vec![ALL, CERTIFICATE, PIECES, BMC],
        ClientKind::Ipxe => match content {
            Some(ContentKind::Iso { .. } | ContentKind::Disk) => vec![ALL, CERTIFICATE, IPXE, IPXE_DISK],
            _ => vec![ALL, CERTIFICATE, IPXE],
        },
        ClientKind::Uefi => vec![ALL, CERTIFICATE, UEFI],
        ClientKind::Qemu => vec![ALL, CERTIFICATE, PIECES, QEMU],
        ClientKind::Download => vec![ALL, CERTIFICATE, DOWNLOAD],
        // This client accepts any certificate, because it verifies the digest of the rootfs.
        ClientKind::Rootfs => vec![ALL, ROOTFS],
    }
}

/// Returns `true` if a kind of client can use this content.
fn can_use(client: ClientKind, content: &ContentKind) -> bool {
    match client {
        ClientKind::Bmc | ClientKind::Qemu => matches!(content, ContentKind::Iso { .. } | ContentKind::Disk),
        ClientKind::Ipxe | ClientKind::Download => true,
        ClientKind::Uefi => {
            matches!(content, ContentKind::Iso { .. } | ContentKind::Disk | ContentKind::EfiProgram)
        }
        ClientKind::Rootfs => matches!(content, ContentKind::Archive { .. }),
    }
}

/// Returns the verdict of each kind of client.
pub(super) fn client_reports(report: &DoctorReport) -> Vec<ClientReport> {
    ClientKind::ALL.into_iter().map(|client| client_report(client, report)).collect()
}

fn client_report(client: ClientKind, report: &DoctorReport) -> ClientReport {
    let content = report.content.as_ref();
    let boots =
        report.finding(DoctorCheck::Content).is_none_or(|finding| finding.outcome == CheckOutcome::Holds);
    // If no client can boot the file, report the file as wrong to each client.
    if boots && content.is_some_and(|content| !can_use(client, content)) {
        return ClientReport { client, verdict: ClientVerdict::NotForIt, reasons: Vec::new() };
    }
    let content_need: Requirement = match client {
        ClientKind::Download => (DoctorCheck::Content, Remark, "the saved file is not an image"),
        _ => (DoctorCheck::Content, Refuses, "the file is not bootable"),
    };
    let mut reasons = Vec::new();
    let mut is_unknown = false;
    for (check, weight, why) in
        requirements(client, content).into_iter().flatten().copied().chain([content_need])
    {
        let Some(finding) = report.finding(check) else { continue };
        match finding.outcome {
            CheckOutcome::Holds => {}
            CheckOutcome::Untried => is_unknown |= weight == Refuses,
            CheckOutcome::Fails => {
                reasons.push(VerdictReason { check, weight, why, detail: finding.detail.clone() });
            }
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    let verdict = match reasons.first().map(|reason| reason.weight) {
        Some(Refuses) => ClientVerdict::Refuses,
        _ if is_unknown => ClientVerdict::Unknown,
        Some(Remark) => ClientVerdict::WorksWithRemark,
        None => ClientVerdict::Works,
    };
    ClientReport { client, verdict, reasons }
}

#[cfg(test)]
mod tests {
    use super::super::report::DoctorFinding;
    use super::*;

    fn report_with_failures(failed: &[(DoctorCheck, CheckOutcome)], content: ContentKind) -> DoctorReport {
        let finding = |(check, outcome): &(DoctorCheck, CheckOutcome)| DoctorFinding {
            check: *check,
            outcome: *outcome,
            detail: String::new(),
        };
        DoctorReport {
            url: String::new(),
            redirects: Vec::new(),
            size: None,
            content: Some(content),
            findings: failed.iter().map(finding).collect(),
            clients: Vec::new(),
        }
    }

    fn iso_content() -> ContentKind {
        ContentKind::Iso { volume: String::new(), has_boot_record: true }
    }

    /// No client has two requirements for the same check. The checks listed at the end of this test are requirements of
    /// no client.
    #[test]
    fn client_has_each_requirement_once() {
        for client in ClientKind::ALL {
            let all: Vec<DoctorCheck> = requirements(client, Some(&iso_content()))
                .into_iter()
                .flatten()
                .map(|(check, ..)| *check)
                .collect();
            for (index, check) in all.iter().enumerate() {
                assert!(
                    !all.iter().skip(index + 1).any(|other| other == check),
                    "{}: {check}",
                    client.name()
                );
            }
        }
        let needed = |check: &DoctorCheck| {
            let all =
                ClientKind::ALL.into_iter().flat_map(|client| requirements(client, Some(&iso_content())));
            all.flatten().any(|(needed, ..)| needed == check)
        };
        let unused: Vec<&str> =
            DoctorCheck::ALL.iter().filter(|check| !needed(check)).map(|check| check.name()).collect();
        assert_eq!(unused, ["range-suffix", "range-many", "if-none-match", "http-1.0", "expect", "content"]);
    }

    #[test]
    fn failed_requirement_decides_verdict() {
        for client in ClientKind::ALL {
            let content = if client == ClientKind::Rootfs {
                ContentKind::Archive { packing: super::super::report::ArchiveCompression::Cpio }
            } else {
                iso_content()
            };
            assert_eq!(
                client_report(client, &report_with_failures(&[], content.clone())).verdict,
                ClientVerdict::Works
            );
            for (check, weight, _) in requirements(client, Some(&content)).into_iter().flatten() {
                for outcome in [CheckOutcome::Fails, CheckOutcome::Untried] {
                    let expected = match (weight, outcome) {
                        (Refuses, CheckOutcome::Fails) => ClientVerdict::Refuses,
                        (Refuses, _) => ClientVerdict::Unknown,
                        (Remark, CheckOutcome::Fails) => ClientVerdict::WorksWithRemark,
                        (Remark, _) => ClientVerdict::Works,
                    };
                    let report =
                        client_report(client, &report_with_failures(&[(*check, outcome)], content.clone()));
                    assert_eq!(report.verdict, expected, "{}: {check}", client.name());
                }
            }
        }
    }

    #[test]
    fn unbootable_file_is_refused() {
        let script =
            report_with_failures(&[(DoctorCheck::Content, CheckOutcome::Holds)], ContentKind::IpxeScript);
        assert_eq!(client_report(ClientKind::Bmc, &script).verdict, ClientVerdict::NotForIt);
        assert_eq!(client_report(ClientKind::Ipxe, &script).verdict, ClientVerdict::Works);
        let page = report_with_failures(&[(DoctorCheck::Content, CheckOutcome::Fails)], ContentKind::Page);
        assert_eq!(client_report(ClientKind::Bmc, &page).verdict, ClientVerdict::Refuses);
        assert_eq!(client_report(ClientKind::Download, &page).verdict, ClientVerdict::WorksWithRemark);
    }
}
