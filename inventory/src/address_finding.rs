//! Findings about the base URLs of the service.

use ignition::discovery::{HttpUrl, masked_url};
use ignition::report::Severity;
use serde::Serialize;

use crate::settings::Settings;

/// A base URL that only the machine of the service reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AddressFinding {
    /// The severity.
    pub severity: Severity,
    /// The URL, without secrets.
    pub url: String,
    /// The message.
    pub message: String,
}

impl AddressFinding {
    /// Returns the findings about the URL to which machines register, and about the URL of images.
    pub(crate) fn about(service: Option<&HttpUrl>, images: &HttpUrl) -> Vec<Self> {
        let service = service.map(|url| ("service", url));
        let images = (service.map(|(_, url)| url) != Some(images)).then_some(("image service", images));
        service.into_iter().chain(images).filter_map(|(name, url)| Self::new(name, url)).collect()
    }

    fn new(name: &str, url: &HttpUrl) -> Option<Self> {
        let reason = url.unreachable_reason()?;
        let message = format!("{reason}; set the base URL of the {name} to a URL at which machines reach it");
        Some(Self { severity: Severity::Warning, url: masked_url(url.as_str()), message })
    }
}

impl Settings {
    /// Returns the findings about the base URLs of the service.
    #[must_use]
    pub fn address_findings(&self) -> Vec<AddressFinding> {
        AddressFinding::about(Some(&self.service_base_url), &self.image_service_base_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable_urls(service: &str, images: &str) -> Vec<String> {
        let parse = |text| HttpUrl::parse("base_url", text).unwrap();
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
    fn finding_without_a_service_is_about_images() {
        let images = HttpUrl::parse("base_url", "http://u:hunter2@localhost").unwrap();
        let findings = AddressFinding::about(None, &images);
        assert_eq!(findings.len(), 1);
        let AddressFinding { url, message, .. } = &findings[0];
        assert_eq!(url, "http://*****@localhost");
        assert!(
            message.contains("the base URL of the image service") && !message.contains("hunter2"),
            "{message}"
        );
    }
}
