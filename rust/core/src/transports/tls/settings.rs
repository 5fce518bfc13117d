//! Makes rustls's configuration of the options: reads certificates and keys, and chooses which CAs to trust.

use std::fs;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, DigitallySignedStruct, InconsistentKeys, RootCertStore, ServerConfig,
    SignatureScheme,
};
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind, Result, printable};
use crate::options::{ClientAuth, Tls};

/// The beginning of every certificate and key in PEM. A path does not contain it.
const PEM: &str = "-----BEGIN ";

const CERTIFICATE: &str = "TLS_CERTIFICATE";
const KEY: &str = "TLS_KEY";
const CA: &str = "TLS_CA";

/// The configuration of a bound address.
///
/// # Errors
/// `Invalid`, or the error of a file, naming the option.
pub(super) fn server(tls: &Tls) -> Result<ServerConfig> {
    if tls.certificate.is_empty() {
        let text = "a socket that binds needs TLS_CERTIFICATE and TLS_KEY";
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    let (chain, key) = identity(tls)?;
    let auth = tls.client_auth.unwrap_or(match tls.ca.is_empty() {
        true => ClientAuth::None,
        false => ClientAuth::Required,
    });
    let provider = provider();
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(refused)?;
    let builder = match auth {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::Optional | ClientAuth::Required => {
            if tls.ca.is_empty() && tls.trust_system != Some(true) {
                let text = format!(
                    "TLS_CLIENT_AUTH = {} needs TLS_CA, the CA of the clients",
                    auth as i32
                );
                return Err(Error::with(ErrorKind::Invalid, text));
            }
            let roots = Arc::new(roots(tls)?);
            let mut verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            if auth == ClientAuth::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            let verifier = verifier
                .build()
                .map_err(|error| wrong(CA, &error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(mismatched)?;
    config.alpn_protocols = alpn(&tls.alpn)?;
    Ok(config)
}

/// The configuration of connections that this side makes.
///
/// # Errors
/// As for `server`.
pub(super) fn client(tls: &Tls) -> Result<ClientConfig> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(refused)?;
    let verifier: Arc<dyn ServerCertVerifier> = match tls.unverified {
        true => Arc::new(Unverified { provider }),
        false => WebPkiServerVerifier::builder_with_provider(Arc::new(roots(tls)?), provider)
            .build()
            .map_err(|error| wrong(CA, &error.to_string()))?,
    };
    // Without TLS_VERIFY = 0, this is the verifier that rustls uses itself.
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match tls.certificate.is_empty() {
        true => builder.with_no_client_auth(),
        false => {
            let (chain, key) = identity(tls)?;
            let builder = builder.with_client_auth_cert(chain, key);
            builder.map_err(mismatched)?
        }
    };
    config.alpn_protocols = alpn(&tls.alpn)?;
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates and the key of this side.
fn identity(tls: &Tls) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificate = read(CERTIFICATE, &tls.certificate)?;
    let chain = certificates(CERTIFICATE, &certificate)?;
    let key = match tls.key.is_empty() {
        true => key(CERTIFICATE, &certificate)?,
        false => key(KEY, &read(KEY, &tls.key)?)?,
    };
    Ok((chain, key))
}

/// The CAs that the other side's certificate may be from.
fn roots(tls: &Tls) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if !tls.ca.is_empty() {
        for certificate in certificates(CA, &read(CA, &tls.ca)?)? {
            let added = roots.add(certificate);
            added
                .map_err(|error| wrong(CA, &format!("has a certificate that is wrong: {error}")))?;
        }
    }
    if tls.trust_system.unwrap_or(tls.ca.is_empty()) {
        let found = rustls_native_certs::load_native_certs();
        // Some systems have certificates that are too old for rustls.
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let text = "this system has no certificates of CAs (SSL_CERT_FILE names a file with them); set TLS_CA to that of the server's CA";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
    }
    if roots.is_empty() {
        let text = "TLS_TRUST_SYSTEM = 0 leaves no CA to trust; set TLS_CA";
        return Err(Error::with(ErrorKind::Invalid, text));
    }
    Ok(roots)
}

/// The PEM in an option, or in the file that it names.
fn read(option: &str, value: &str) -> Result<Zeroizing<Vec<u8>>> {
    if value.contains(PEM) {
        return Ok(value.as_bytes().to_vec().into());
    }
    let bytes = fs::read(value)
        .map_err(|error| Error::from(error).about(format_args!("{option} {}", printable(value))))?;
    Ok(bytes.into())
}

fn certificates(option: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(
            option,
            "has no certificate: expected PEM with BEGIN CERTIFICATE",
        )),
        Err(error) => Err(wrong(option, &format!("is not PEM: {error}"))),
    }
}

fn key(option: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        let encrypted = b"ENCRYPTED";
        let is_encrypted = pem
            .windows(encrypted.len())
            .any(|window| window == encrypted);
        match (is_encrypted, option) {
            (true, _) => wrong(
                option,
                "is a key with a password; 'openssl pkey' writes it without one",
            ),
            (false, CERTIFICATE) => wrong(KEY, "is missing, and TLS_CERTIFICATE has no key either"),
            (false, _) => wrong(option, &format!("has no private key in PEM: {error}")),
        }
    })
}

fn alpn(names: &str) -> Result<Vec<Vec<u8>>> {
    let names = names.split(',').map(str::trim);
    let names: Vec<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
    if names == [b""] {
        return Ok(Vec::new());
    }
    match names.iter().all(|name| (1..256).contains(&name.len())) {
        true => Ok(names),
        false => Err(wrong(
            "TLS_ALPN",
            "takes names of 1 to 255 bytes, separated by commas",
        )),
    }
}

fn wrong(option: &str, why: &str) -> Error {
    Error::with(ErrorKind::Invalid, format!("{option} {why}"))
}

fn mismatched(error: rustls::Error) -> Error {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            wrong(KEY, "is not the key of TLS_CERTIFICATE")
        }
        error => wrong(
            CERTIFICATE,
            &format!("cannot be used with its key: {error}"),
        ),
    }
}

fn refused(error: rustls::Error) -> Error {
    Error::with(ErrorKind::NotSupported, error.to_string())
}

/// TLS_VERIFY = 0: any certificate will do. The server still proves that it has the certificate's key.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
