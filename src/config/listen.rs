//! `[[listen]]` and `[admin]`: where connections are taken, and with which certificates.

use super::address::{host, is_loopback, listen, listen_tcp};
use super::reader::{Reader, Table, Value};
use super::secrets::{certificate, private_key, secret};
use super::unique::Unique;
use super::values::{flag, word};
use super::{Admin, ClientAuth, Listen, ListenAddr, ServerCert, TlsVersion};

/// The addresses taken so far.
pub(super) struct Taken<'r>(Unique<'r>);

impl<'r> Taken<'r> {
    pub fn new(reader: &'r Reader<'r>) -> Taken<'r> {
        Taken(Unique::new(reader, "an address has one listener"))
    }

    /// Port 0 is another port each time.
    fn claim(&self, v: &Value, addr: &str) {
        if !addr.ends_with(":0") {
            self.0.claim(v, addr);
        }
    }
}

pub(super) fn read(t: &Table, taken: &Taken) -> Listen {
    let addr = t.required("addr", "\"HOST:PORT\" or \"unix:PATH\"", |v| {
        let addr = listen(v)?;
        taken.claim(v, v.text().unwrap_or_default());
        Some(addr)
    });
    let h2c = t.value("h2c", flag).unwrap_or(false);
    if t.has("tls") && h2c {
        t.misplaced(
            "h2c",
            "tls stands beside it: give h2 = true for HTTP/2 over TLS",
        );
    }
    if t.left_out("tls") {
        refuse_without_tls(t);
    } else if t.left_out("client_ca") {
        t.misplaced("client_auth", "client_ca is missing beside it: name the CA");
    }
    let certs = Unique::new(t.reader, "a name has one certificate");
    Listen {
        addr: addr.unwrap_or_else(|| ListenAddr::Tcp(String::new())),
        tls: t
            .value("tls", |v| certificates(v, &certs))
            .unwrap_or_default(),
        tls_min: t.value("tls_min", word).unwrap_or(TlsVersion::V1_2),
        client_ca: t.value("client_ca", certificate),
        client_auth: t.value("client_auth", word).unwrap_or(ClientAuth::Required),
        h2: t.value("h2", flag).unwrap_or(false),
        h2c,
        proxy_protocol: t.value("proxy_protocol", flag).unwrap_or(false),
    }
}

fn refuse_without_tls(t: &Table) {
    const WHY: &str = "tls is missing beside it: give the certificates, or leave this out";
    t.misplaced("tls_min", WHY);
    t.misplaced("client_ca", WHY);
    t.misplaced("client_auth", WHY);
    if t.value("h2", |v| v.raw.as_bool()) == Some(true) {
        t.misplaced(
            "h2",
            "tls is missing beside it: give h2c = true for HTTP/2 in cleartext",
        );
    }
}

fn certificates(v: &Value, names: &Unique) -> Option<Vec<ServerCert>> {
    v.filled_list("at least one { cert, key }", |cert| {
        if cert.raw.as_table().is_some_and(|c| !c.contains_key("sni")) {
            // Without a name it is the certificate for every other name, and there is one of those.
            names.claim_hidden(cert, "");
        }
        cert.table(|t| server_cert(t, names))
    })
}

fn server_cert(t: &Table, names: &Unique) -> ServerCert {
    let cert = t.required("cert", "the certificate's PEM file", certificate);
    let key = t.required("key", "the PEM file of the certificate's key", private_key);
    let sni = t.value("sni", |v| {
        let name = host(v)?;
        names.claim(v, &name);
        Some(name)
    });
    ServerCert {
        sni,
        cert: cert.unwrap_or_default(),
        key: key.unwrap_or_default(),
    }
}

pub(super) fn read_admin(t: &Table, taken: &Taken) -> Admin {
    let open = t.left_out("token");
    let addr = t.required("addr", "\"HOST:PORT\", as \"127.0.0.1:9090\"", |v| {
        let addr = listen_tcp(v)?;
        taken.claim(v, &addr);
        if open && !is_loopback(&addr) {
            v.refuse_because(
                "other machines reach it: give a token beside it, or a loopback address",
            );
        }
        Some(addr)
    });
    Admin {
        addr: addr.unwrap_or_default(),
        token: t.value("token", secret),
    }
}
