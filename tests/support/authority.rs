//! Issues certificates of a test authority.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};

use super::Scratch;

pub(crate) struct CertificateAuthority {
    pub(crate) issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate.
    pub(crate) pem: String,
}

impl CertificateAuthority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = distinguished_name("authority");
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate for this machine. Returns it with its key.
    pub(crate) fn issue(&self) -> (String, String) {
        self.issue_for_names(&["127.0.0.1", "localhost"], |_| {})
    }

    /// Issues a certificate for the given names, after `change` has edited the other parameters. Returns it with its
    /// key.
    pub(crate) fn issue_for_names(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        params.distinguished_name = distinguished_name("server");
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

fn distinguished_name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// Writes a certificate and its key to two files.
pub(crate) fn write_pair(scratch: &Scratch, (chain, key): &(String, String)) -> (PathBuf, PathBuf) {
    (scratch.write("cert.pem", chain), scratch.write("key.pem", key))
}
