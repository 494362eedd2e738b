//! Whom a connection to a server trusts, in libpq's terms.

use crate::ledger::error::{Kind, LedgerError};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The authorities are those of a PEM file, or of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Whoever answers: what is written is hidden from listeners, not from one who stands between.
    Anyone,
    /// Who shows a certificate of an authority, whatever the name in it.
    Signed(Option<PathBuf>),
    /// Who shows one that an authority gave to the host of the URL.
    Named(Option<PathBuf>),
}

impl Trust {
    pub fn connector(&self, place: &str) -> Result<MakeRustlsConnect, LedgerError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier {
            authorities: self
                .authorities(&provider)
                .map_err(|cause| LedgerError::new(place, Kind::BadUrl, cause))?,
            any_name: !matches!(self, Trust::Named(_)),
            provider: provider.clone(),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| LedgerError::new(place, Kind::BadUrl, e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    fn authorities(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Option<Arc<WebPkiServerVerifier>>, String> {
        let roots = match self {
            Trust::Anyone => return Ok(None),
            Trust::Signed(Some(file)) | Trust::Named(Some(file)) => from_file(file)?,
            Trust::Signed(None) | Trust::Named(None) => of_the_system()?,
        };
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map(Some)
            .map_err(|e| format!("no authority can be trusted: {e}"))
    }
}

fn from_file(file: &Path) -> Result<RootCertStore, String> {
    let failed = |e: &dyn std::fmt::Display| format!("sslrootcert {}: {e}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| failed(&e))? {
        let certificate = certificate.map_err(|e| failed(&e))?;
        roots.add(certificate).map_err(|e| failed(&e))?;
    }
    match roots.is_empty() {
        true => Err(failed(&"no certificate in PEM form in it")),
        false => Ok(roots),
    }
}

fn of_the_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs()
        .map_err(|e| format!("the system's certificates cannot be read: {e}"))?;
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(found);
    match taken {
        0 => Err("the system has no certificates, name some with sslrootcert".into()),
        _ => Ok(roots),
    }
}

#[derive(Debug)]
struct Verifier {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(e) if self.any_name && is_of_the_name(&e) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// The name is looked at last: all else was right.
fn is_of_the_name(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}
