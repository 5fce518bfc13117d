//! SRV records (RFC 2782), asked for with hickory-resolver.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData};
use hickory_resolver::system_conf::read_system_conf;
use zeroxide::{Error, ErrorKind, Result};

use super::{Resolve, endpoint, unanswered};

/// Returns a function that looks up SRV records, with these name servers or, without any, those of the system.
pub(crate) fn services_of(name: &str, servers: &[SocketAddr]) -> Result<Resolve> {
    let invalid = |error: &dyn std::error::Error| {
        Error::with(ErrorKind::Invalid, format!("srv://{name}: {error}"))
    };
    let wanted = Name::from_utf8(name).map_err(|error| invalid(&error))?;
    let (config, options) = match servers {
        [] => read_system_conf().map_err(|error| {
            let text = format!("/etc/resolv.conf: {error}; name a server with Lookup::name_server");
            Error::with(ErrorKind::Invalid, text)
        })?,
        _ => (config_of(servers), ResolverOpts::default()),
    };
    let name = name.to_owned();
    Ok(Box::new(move || {
        let records = look_up(&wanted, &config, &options);
        let records = records.map_err(|error| unanswered(&name, &*error))?;
        Ok(endpoints_of(&records))
    }))
}

fn config_of(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        let mut config = NameServerConfig::udp_and_tcp(server.ip());
        config.connections = connections.to_vec();
        config
    });
    ResolverConfig::from_name_servers(servers.collect())
}

/// Asks the name servers, in a runtime and with a resolver of its own: no socket, task or cached answer is left between
/// two look-ups.
fn look_up(
    name: &Name,
    config: &ResolverConfig,
    options: &ResolverOpts,
) -> std::result::Result<Vec<SRV>, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    let provider = TokioRuntimeProvider::default();
    let resolver = TokioResolver::builder_with_config(config.clone(), provider);
    let resolver = resolver.with_options(options.clone()).build()?;
    match runtime.block_on(resolver.srv_lookup(name.clone())) {
        Ok(found) => {
            let records = found
                .answers()
                .iter()
                .filter_map(|record| match &record.data {
                    RData::SRV(record) => Some(record.clone()),
                    _ => None,
                });
            Ok(records.collect())
        }
        Err(error) if error.is_no_records_found() => Ok(Vec::new()),
        Err(error) => Err(Box::<NetError>::new(error)),
    }
}

/// The places of the records with the lowest priority. The others are for when those are gone (RFC 2782).
fn endpoints_of(records: &[SRV]) -> BTreeSet<String> {
    let first = records.iter().map(|record| record.priority).min();
    let first = records
        .iter()
        .filter(|record| Some(record.priority) == first);
    // A target of "." offers nothing.
    first
        .filter(|record| record.port > 0 && !record.target.is_root())
        .map(|record| {
            let host = record.target.to_ascii();
            endpoint(host.trim_end_matches('.'), record.port)
        })
        .collect()
}
