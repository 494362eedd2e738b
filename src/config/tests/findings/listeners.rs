//! What is found wrong with listeners, the admin one too.

use super::*;

#[test]
fn addresses_are_checked_by_their_form() {
    check(
        "[[listen]]\naddr = \"8080\"\n",
        &["2:8: listen.addr = \"8080\": give \"HOST:PORT\", \"[IPV6]:PORT\" or \"unix:PATH\""],
    );
    check(
        "[[listen]]\naddr = \"unix:\"\n",
        &[
            "2:8: listen.addr = \"unix:\": give a path after unix:, as \"unix:/run/streamgate/web.sock\"",
        ],
    );
    check(
        "[[listen]]\n",
        &["1:1: listen.addr is missing: give \"HOST:PORT\" or \"unix:PATH\""],
    );
    check(
        "[[listen]]\naddr = \"127.0.0.1:18080\"\n",
        &[
            "5:8: listen.addr = \"127.0.0.1:18080\": it repeats line 2, but an address has one listener",
        ],
    );
    check(
        "[server]\ntrusted_proxies = [\"10.0.0.0/40\", 7]\n",
        &[
            "2:20: server.trusted_proxies = \"10.0.0.0/40\": give an address or a range as \"10.0.0.0/8\" or \"fd00::/8\"",
            "2:35: server.trusted_proxies = 7: give an address or a range as \"10.0.0.0/8\" or \"fd00::/8\"",
        ],
    );
}

#[test]
fn the_admin_listener_stays_on_this_machine_or_asks_for_a_token() {
    check(
        "[admin]\naddr = \"0.0.0.0:9\"\n",
        &[
            "2:8: admin.addr = \"0.0.0.0:9\": other machines reach it: give a token beside it, or a loopback address",
        ],
    );
    check(
        "[admin]\naddr = \"0.0.0.0:9\"\ntoken = { env = \"T\" }\n",
        &[],
    );
    check(
        "[admin]\n",
        &["1:1: admin.addr is missing: give \"HOST:PORT\", as \"127.0.0.1:9090\""],
    );
    check(
        "[admin]\naddr = \"127.0.0.1:18080\"\n",
        &[
            "2:8: admin.addr = \"127.0.0.1:18080\": it repeats line 5, but an address has one listener",
        ],
    );
}

#[test]
fn a_listener_without_tls_has_nothing_that_needs_it() {
    let why = "tls is missing beside it: give the certificates, or leave this out";
    check(
        "[[listen]]\naddr = \"a:1\"\ntls_min = \"1.3\"\nclient_auth = \"optional\"\nh2 = true\n",
        &[
            &format!("3:11: listen.tls_min = \"1.3\": {why}"),
            &format!("4:15: listen.client_auth = \"optional\": {why}"),
            "5:6: listen.h2 = true: tls is missing beside it: give h2c = true for HTTP/2 in cleartext",
        ],
    );
    check("[[listen]]\naddr = \"a:1\"\nh2 = false\nh2c = true\n", &[]);
}

#[test]
fn certificates_come_in_pairs_from_files_that_hold_them() {
    let gone = "No such file or directory (os error 2)";
    check(
        "[[listen]]\naddr = \"a:1\"\nh2c = true\nclient_auth = \"optional\"\ntls = [{ cert = \"a.pem\" }]\n",
        &[
            "3:7: listen.h2c = true: tls stands beside it: give h2 = true for HTTP/2 over TLS",
            "4:15: listen.client_auth = \"optional\": client_ca is missing beside it: name the CA",
            "5:8: listen.tls.key is missing: give the PEM file of the certificate's key",
            &format!("5:17: listen.tls.cert = \"a.pem\": cannot read FOLDER/a.pem: {gone}"),
        ],
    );
    check(
        "[[listen]]\naddr = \"a:1\"\ntls = []\n",
        &["3:7: listen.tls = a list: give at least one { cert, key }"],
    );
    pool(
        "tls = { cert = \"c.pem\" }\n",
        &[
            "5:7: pool.tls.key is missing: give the PEM file of the certificate's key",
            &format!("5:16: pool.tls.cert = \"c.pem\": cannot read FOLDER/c.pem: {gone}"),
        ],
    );
}

#[test]
fn a_file_that_holds_something_else_is_no_certificate() {
    let scratch = Scratch::with_certificates();
    let text = "[[listen]]\naddr = \"a:1\"\ntls = [{ cert = \"a.key\", key = \"a.pem\" }, { cert = \"a.pem\", key = \"a.key\" }]\n";
    let (_, findings, _) = scratch.read(&format!("{text}{BASE}"));
    let messages: Vec<&str> = findings.iter().map(|f| f.message.as_str()).collect();
    let folder = scratch.0.display();
    assert_eq!(
        messages,
        [
            format!("listen.tls.cert = \"a.key\": no certificate in PEM form in {folder}/a.key")
                .as_str(),
            &format!(
                "listen.tls.key = \"a.pem\": no unencrypted private key in PEM form in {folder}/a.pem"
            ),
            "listen.tls: it repeats line 3, but a name has one certificate",
        ]
    );
}
