//! Findings about base URLs that other machines cannot reach.

use ignition::discovery::{HttpUrl, masked_url};
use ignition::report::Severity;
use serde::Serialize;

use crate::settings::Settings;

/// A base URL that only the service's own machine can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddressFinding {
    /// Severity of the finding, currently always [`Severity::Warning`].
    pub severity: Severity,
    /// The URL, with secrets masked.
    pub url: String,
    /// Why the URL is unreachable, and how to correct it.
    pub message: String,
}

impl AddressFinding {
    /// Returns the findings about the URL at which hosts register (`service`) and about the URL of images. A `service`
    /// that differs from the base URL in the settings comes from a user's override.
    pub(crate) fn about(service: Option<&HttpUrl>, settings: &Settings) -> Vec<Self> {
        const SERVICE_ADVICE: &str = "set the base URL of the service to a URL at which machines reach it";
        const IMAGES_ADVICE: &str =
            "set the base URL of the image service to a URL at which machines reach it";
        const OVERRIDE_ADVICE: &str = "correct `--url` of agent.service in the Ignition config override";
        let (base, images) = (&settings.service_base_url, &settings.image_service_base_url);
        let service = service.map(|url| (url, if url == base { SERVICE_ADVICE } else { OVERRIDE_ADVICE }));
        let is_same = service == Some((images, SERVICE_ADVICE));
        let images = (!is_same).then_some((images, IMAGES_ADVICE));
        service.into_iter().chain(images).filter_map(|(url, advice)| Self::new(url, advice)).collect()
    }

    fn new(url: &HttpUrl, advice: &str) -> Option<Self> {
        let message = format!("{}; {advice}", url.unreachable_reason()?);
        Some(Self { severity: Severity::Warning, url: masked_url(url.as_str()), message })
    }
}

impl Settings {
    /// Returns the findings about the base URLs of the service.
    #[must_use]
    pub fn address_findings(&self) -> Vec<AddressFinding> {
        AddressFinding::about(Some(&self.service_base_url), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> HttpUrl {
        HttpUrl::parse("base_url", text).unwrap()
    }

    fn unreachable_urls(service: &str, images: &str) -> Vec<String> {
        let findings = Settings::new(parse(service), parse(images)).address_findings();
        findings.into_iter().map(|finding| finding.url).collect()
    }

    #[test]
    fn each_unreachable_base_url_has_one_finding() {
        let (own, other) = ("http://127.0.0.1:8090", "http://192.0.2.1:8090");
        assert_eq!(unreachable_urls(own, own), [own]);
        assert_eq!(unreachable_urls(other, own), [own]);
        assert_eq!(unreachable_urls(own, other), [own]);
        assert_eq!(unreachable_urls(own, "http://[::]"), [own, "http://[::]"]);
        assert_eq!(unreachable_urls(other, other), [""; 0]);
    }

    #[test]
    fn finding_without_a_service_url_is_about_images() {
        let settings = Settings::new(parse("http://localhost"), parse("http://u:hunter2@localhost"));
        let findings = AddressFinding::about(None, &settings);
        assert_eq!(findings.len(), 1);
        let AddressFinding { url, message, .. } = &findings[0];
        assert_eq!(url, "http://*****@localhost");
        assert!(
            message.contains("the base URL of the image service") && !message.contains("hunter2"),
            "{message}"
        );
    }

    #[test]
    fn finding_about_an_override_url_advises_correcting_the_override() {
        let loopback = parse("http://localhost:8090");
        let override_advice = "correct `--url` of agent.service in the Ignition config override";
        let images_advice = "set the base URL of the image service to a URL at which machines reach it";
        for (images, advice) in [
            ("http://192.0.2.1:8888", &[override_advice][..]),
            (loopback.as_str(), &[override_advice, images_advice]),
        ] {
            let settings = Settings::new(parse("http://192.0.2.1:8090"), parse(images));
            let findings = AddressFinding::about(Some(&loopback), &settings);
            let messages: Vec<_> = findings.into_iter().map(|finding| finding.message).collect();
            let reason = loopback.unreachable_reason().unwrap();
            let expected: Vec<_> = advice.iter().map(|advice| format!("{reason}; {advice}")).collect();
            assert_eq!(messages, expected);
        }
    }
}
