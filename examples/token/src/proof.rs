//! Proofs that one side knows the token.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The length of a nonce.
pub(crate) const NONCE: usize = 32;
/// The length of a proof.
pub(crate) const PROOF: usize = 32;

/// The side that proves. Without it, a proof could be sent back to the side that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The nonces and the name that a connection has exchanged.
#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    pub(crate) client_nonce: [u8; NONCE],
    pub(crate) server_nonce: [u8; NONCE],
    pub(crate) name: Vec<u8>,
}

/// The token, ready for use.
pub(crate) struct Token(Hmac<Sha256>);

impl Token {
    /// `None` if it cannot be a key; a key of HMAC has any length.
    pub(crate) fn new(secret: &[u8]) -> Option<Token> {
        Hmac::new_from_slice(secret).ok().map(Token)
    }

    /// The proof of one side, with its properties.
    pub(crate) fn prove(&self, side: Side, about: &Transcript, properties: &[u8]) -> [u8; PROOF] {
        let proof = self.over(side, about, properties).finalize();
        proof.into_bytes().into()
    }

    /// Whether this is the proof of one side. Takes the same time for every wrong proof.
    pub(crate) fn accepts(
        &self,
        proof: &[u8; PROOF],
        side: Side,
        about: &Transcript,
        properties: &[u8],
    ) -> bool {
        let mac = self.over(side, about, properties);
        mac.verify_slice(proof).is_ok()
    }

    /// All parts but the last have a fixed length or are preceded by it, so that no two inputs have the same bytes.
    fn over(&self, side: Side, about: &Transcript, properties: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(match side {
            Side::Client => b"TOKEN client",
            Side::Server => b"TOKEN server",
        });
        mac.update(&about.client_nonce);
        mac.update(&about.server_nonce);
        mac.update(&(about.name.len() as u64).to_be_bytes());
        mac.update(&about.name);
        mac.update(properties);
        mac
    }
}
