//! The roles of libzmq.rs over a bare connection of TCP or TLS, without sockets of zeroxide: the time that the kernel takes
//! alone, or the kernel and rustls.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustls::StreamOwned;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::{Task, measure, turns};

/// Reads in one thread and one buffer.
pub fn pull(task: &Task, mut stream: impl Read + Send + 'static) {
    let counter = Arc::new(AtomicU64::new(0));
    let (shared, mut buffer) = (Arc::clone(&counter), vec![0; task.size]);
    thread::spawn(move || {
        let mut bytes = 0;
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            bytes += count;
            shared.store((bytes / buffer.len()) as u64, Ordering::Relaxed);
        }
    });
    measure(task, vec![counter]);
}

pub fn push(task: &Task, mut stream: impl Write) {
    let buffer = vec![0; task.size];
    while stream.write_all(&buffer).is_ok() {}
}

pub fn rep() {
    let mut stream = accepted();
    let mut body = [0; 64];
    while let Ok(count @ 1..) = stream.read(&mut body) {
        stream.write_all(&body[..count]).expect("a peer");
    }
}

pub fn req(task: &Task) {
    let mut stream = connected(task);
    let mut body = [0; 64];
    turns(task, || {
        stream.write_all(&body[..1]).expect("a peer");
        let _ = stream.read(&mut body).expect("a peer");
    });
}

pub fn accepted() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("endpoints {}", listener.local_addr().expect("its address"));
    let (stream, _) = listener.accept().expect("a connection");
    stream.set_nodelay(true).expect("a tcp connection");
    stream
}

pub fn connected(task: &Task) -> TcpStream {
    let stream = TcpStream::connect(&task.endpoints[0]).expect("a connection");
    stream.set_nodelay(true).expect("a tcp connection");
    stream
}

pub fn accepted_with_tls() -> StreamOwned<ServerConnection, TcpStream> {
    let chain = CertificateDer::pem_slice_iter(certificate("server.pem").as_bytes())
        .collect::<Result<_, _>>()
        .expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(certificate("server.key").as_bytes()).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate and its key");
    let connection = ServerConnection::new(Arc::new(config)).expect("a configuration");
    StreamOwned::new(connection, accepted())
}

pub fn connected_with_tls(task: &Task) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(certificate("ca.pem").as_bytes());
    roots
        .add(authority.expect("a certificate"))
        .expect("a certificate of an authority");
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    StreamOwned::new(connection, connected(task))
}

/// A file in the folder of the certificates, as PEM.
pub fn certificate(name: &str) -> String {
    let folder = env::var_os("ZEROXIDE_BENCH_CERTIFICATES").expect("a folder of certificates");
    fs::read_to_string(Path::new(&folder).join(name)).expect("a file")
}
