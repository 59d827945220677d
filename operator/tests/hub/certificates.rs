//! Creates the certificate authority, the certificates and the keys of the hub.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// The certificates that clients and the fault proxy need. All others are only files in the hub's folder.
#[derive(Debug)]
pub(super) struct Certificates {
    /// Certificate of the authority, in DER.
    pub(super) authority: Vec<u8>,
    /// Certificate for loopback addresses, in DER. The API server and the fault proxy use it.
    pub(super) server: Vec<u8>,
    /// Private key of `server`, in PKCS #8 DER.
    pub(super) server_key: Vec<u8>,
}

impl Certificates {
    /// Creates a certificate authority, a server certificate and the keys for service accounts, and writes them to
    /// `folder`.
    pub(super) fn create(folder: &Path) -> Self {
        let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        let authority_key = KeyPair::generate().unwrap();
        write("ca.key", authority_key.serialize_pem());
        let mut params = params("hub-ca", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let authority = params.self_signed(&authority_key).unwrap();
        write("ca.pem", authority.pem());
        let issuer = Issuer::new(params, authority_key);

        let server_key = KeyPair::generate().unwrap();
        write("server.key", server_key.serialize_pem());
        let server = self::params("hub", &["127.0.0.1", "localhost", "kubernetes.default.svc"])
            .signed_by(&server_key, &issuer)
            .unwrap();
        write("server.pem", server.pem());

        let service_accounts = KeyPair::generate().unwrap();
        write("service-accounts.key", service_accounts.serialize_pem());
        write("service-accounts.pub", service_accounts.public_key_pem());
        Self {
            authority: authority.der().to_vec(),
            server: server.der().to_vec(),
            server_key: server_key.serialize_der(),
        }
    }
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
