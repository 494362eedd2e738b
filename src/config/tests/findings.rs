//! Every kind of finding: some lines, and exactly what is said of them.

use super::*;

/// Lines that only a pool's table can hold.
fn pool(lines: &str, expected: &[&str]) {
    let backends = "backends = [{ addr = \"h:1\" }]";
    check(
        &format!("[[pool]]\nname = \"p\"\nmodels = [\"m\"]\n{backends}\n{lines}"),
        expected,
    );
}

#[test]
fn every_finding_is_reported_in_the_order_of_the_file() {
    check(
        "[server]\nthreds = 4\nmax_body = \"32 fathoms\"\n[[tenant]]\nname = \"a\"\nmax_streams = -3\n",
        &[
            "2:1: unknown key server.threds: did you mean threads?",
            "3:12: server.max_body = \"32 fathoms\": give a size as \"64KiB\", \"32MiB\" or \"512B\", from 1B to 64GiB",
            "4:1: tenant.keys is missing: give the tenant's keys, or anonymous = true (as it is, nobody can be this tenant)",
            "6:15: tenant.max_streams = -3: give a whole number of at least 1",
        ],
    );
}

#[test]
fn an_unknown_key_names_the_one_that_was_meant() {
    check(
        "sever = 1\n",
        &["1:1: unknown key sever: did you mean server?"],
    );
    pool(
        "hartbeat = \"1s\"\n",
        &["5:1: unknown key pool.hartbeat: did you mean pool.stream.heartbeat?"],
    );
    pool(
        "stream = { retry = 1 }\n",
        &["5:12: unknown key pool.stream.retry: did you mean pool.retry?"],
    );
    check(
        "[log]\ncolour = true\n",
        &["2:1: unknown key log.colour: known here are access, error, format, level"],
    );
    check(
        "[log]\n\"a b\" = 1\n",
        &["2:1: unknown key log.a b: known here are access, error, format, level"],
    );
}

#[test]
fn a_finding_is_one_line_whatever_it_quotes() {
    check(
        "[log]\n\"zz\\n\\u001b[31m\" = 1\n",
        &["2:1: unknown key log.zz\\n\\u{1b}[31m: known here are access, error, format, level"],
    );
    check(
        "[log]\nlevel = \"\"\"\n  loud\"\"\"\n",
        &[
            "2:9: log.level = \"\"\"…: give one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
        ],
    );
    let long = "x".repeat(500);
    check(
        &format!("[log]\nformat = \"{long}\"\n"),
        &[&format!(
            "2:10: log.format = \"{}…: give one of \"json\", \"combined\"",
            &long[..59]
        )],
    );
}

#[test]
fn columns_count_characters() {
    pool(
        "headers = { set = { \"X-é\" = \"1\" } } \n",
        &["5:21: pool.headers.set.X-é: give a header's name that does not frame the message"],
    );
    pool(
        "models_ = 'ü' \n",
        &["5:1: unknown key pool.models_: did you mean models?"],
    );
}

#[test]
fn a_word_that_is_no_choice_lists_the_choices() {
    pool(
        "balance = \"fastest\"\n",
        &[
            "5:11: pool.balance = \"fastest\": give one of \"round_robin\", \"least_streams\", \"hash\", \"affinity\"",
        ],
    );
    check(
        "[log]\nlevel = \"INFO\"\n",
        &[
            "2:9: log.level = \"INFO\": give one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
        ],
    );
    check(
        "[log]\nerror = \"off\"\n",
        &["2:9: log.error = \"off\": give a path, \"stderr\" or \"stdout\""],
    );
}

#[test]
fn numbers_outside_their_range_are_refused() {
    check(
        "[server]\nthreads = 1025\n",
        &["2:11: server.threads = 1025: give a whole number from 0 to 1024"],
    );
    check(
        "[server]\nmax_headers = { count = 257, size = 12 }\n",
        &[
            "2:25: server.max_headers.count = 257: give a whole number from 1 to 256",
            "2:37: server.max_headers.size = 12: give a size as \"64KiB\", \"32MiB\" or \"512B\", from 1KiB to 1MiB",
        ],
    );
    pool(
        "retry = { attempts = 0, statuses = [200, 503], budget = -0.5 }\n",
        &[
            "5:22: pool.retry.attempts = 0: give a whole number from 1 to 100",
            "5:37: pool.retry.statuses = 200: give a whole number from 400 to 599",
            "5:57: pool.retry.budget = -0.5: give a number from 0 to 100",
        ],
    );
    pool(
        "retry = { budget = nan }\n",
        &["5:20: pool.retry.budget = nan: give a number from 0 to 100"],
    );
    pool(
        "max_streams = 99999999999999999999\n",
        &["5:15: pool.max_streams = 99999999999999999999: give a whole number of at least 1"],
    );
    pool(
        "max_streams = 1.0\n",
        &["5:15: pool.max_streams = 1.0: give a whole number of at least 1"],
    );
    pool(
        "default_output_units = 1_000_000_001\n",
        &[
            "5:24: pool.default_output_units = 1_000_000_001: give a whole number from 1 to 1000000000",
        ],
    );
}

#[test]
fn none_is_a_duration_only_where_it_means_something() {
    let some = "give a duration longer than 0s";
    pool(
        "timeouts = { connect = \"0s\", total = \"0s\" }\nstream = { heartbeat = \"0s\" }\n",
        &[],
    );
    pool(
        "stream = { write_timeout = \"0s\" }\n",
        &[&format!("5:28: pool.stream.write_timeout = \"0s\": {some}")],
    );
    check(
        "[ledger]\nretention = \"0ms\"\n",
        &[&format!("2:13: ledger.retention = \"0ms\": {some}")],
    );
    pool(
        "timeouts = { idle = \"5\" }\n",
        &[
            "5:21: pool.timeouts.idle = \"5\": give a duration as \"250ms\", \"15s\", \"5m\", \"2h\" or \"30d\", at most 3650d",
        ],
    );
}

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

#[test]
fn a_secret_that_cannot_be_had_is_named_and_never_shown() {
    let wanted = "give a secret as { env = \"NAME\" } or { file = \"PATH\" }";
    pool(
        "api_key = \"sk-oops\"\n",
        &[&format!("5:11: pool.api_key: {wanted}")],
    );
    pool(
        "api_key = {}\n",
        &[&format!("5:11: pool.api_key: {wanted}")],
    );
    pool(
        "api_key = { env = \"A\", file = \"b\" }\n",
        &[
            &format!("5:11: pool.api_key: {wanted}"),
            "5:31: pool.api_key.file = \"b\": cannot read FOLDER/b: No such file or directory (os error 2)",
        ],
    );
    pool(
        "api_key = { env = \"sk-oops\" }\n",
        &["5:19: pool.api_key.env: give the name of an environment variable"],
    );
    pool(
        "api_key = { env = \"UNSET\" }\n",
        &[
            "5:19: pool.api_key.env = \"UNSET\": the environment has no such variable, or not as UTF-8: set it",
        ],
    );
    pool(
        "api_key = { env = \"EMPTY\" }\n",
        &["5:19: pool.api_key.env = \"EMPTY\": it is empty: put the secret there"],
    );
    pool(
        "api_key = { env = \"TWO_LINES\" }\n",
        &[
            "5:19: pool.api_key.env = \"TWO_LINES\": it holds more than one line of plain ASCII: put only the secret there",
        ],
    );
    check(
        "[ledger]\nurl = \"mysql://u:sk-oops@h/d\"\n",
        &["2:7: ledger.url: give \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\""],
    );
    check(
        "[ledger]\nurl = \"postgres://u:sk-oops@h:sk-oops/d\"\n",
        &[
            "2:7: ledger.url: its port is not valid; give \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\"",
        ],
    );
    check(
        "[cluster]\nredis = \"http://:sk-oops@h\"\n",
        &[
            "1:1: cluster.node is missing: give this gateway's name among the others",
            "2:9: cluster.redis: give a URL as \"redis://127.0.0.1:6379\"",
        ],
    );
}

#[test]
fn a_key_opens_one_tenant() {
    let key = "{ sha256 = \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" }";
    check(
        &format!(
            "[[tenant]]\nname = \"a\"\nkeys = [{key}]\n[[tenant]]\nname = \"a\"\nkeys = [{key}, {{ env = \"K\" }}, {{ env = \"K\" }}]\n"
        ),
        &[
            "5:8: tenant.name = \"a\": it repeats line 2, but each tenant has its own name",
            "6:9: tenant.keys: it repeats line 3, but a key opens one tenant, once",
            "6:105: tenant.keys: it repeats line 6, but a key opens one tenant, once",
        ],
    );
    check(
        "[[tenant]]\nname = \"a\"\nkeys = [{ sha256 = \"sk-oops\" }, \"sk-oops\"]\n",
        &[
            "3:20: tenant.keys.sha256: give the SHA-256 of the key as 64 hex digits (streamgate key new prints it)",
            "3:33: tenant.keys: give a key as { sha256 = \"64 hex digits\" }, { env = \"NAME\" } or { file = \"PATH\" }",
        ],
    );
}

#[test]
fn one_tenant_at_most_is_anonymous() {
    check(
        "[[tenant]]\nname = \"a\"\nanonymous = true\n[[tenant]]\nname = \"b\"\nanonymous = true\n",
        &["6:13: tenant.anonymous = true: it repeats line 3, but one tenant at most is anonymous"],
    );
    check(
        "[[tenant]]\nanonymous = true\nbudget = { units = 1 }\nmodels = [\"*\", \"m\"]\n",
        &[
            "1:1: tenant.name is missing: give the tenant's name",
            "3:10: tenant.budget.period is missing: give \"hour\", \"day\", \"month\" or \"total\"",
            "4:10: tenant.models = a list: \"*\" is every model: let it stand alone, or name the models",
        ],
    );
}

#[test]
fn a_pool_has_a_name_models_and_one_source_of_backends() {
    check(
        "[[pool]]\n",
        &[
            "1:1: pool.backends is missing: give at least one { addr = \"HOST:PORT\" }, or discovery",
            "1:1: pool.models is missing: give at least one model (only a pool that another one falls back to needs none)",
            "1:1: pool.name is missing: give the pool's name",
        ],
    );
    pool(
        "discovery = { dns = \"a:1\" }\n",
        &["4:12: pool.backends = a list: discovery stands beside it: give one of the two"],
    );
    check(
        "[[pool]]\nname = \"base\"\nmodels = [\"m\"]\nbackends = [{ addr = \"h:0\" }, { addr = \"h:1\" }, { addr = \"h:1\", weight = 0 }]\n",
        &[
            "4:22: pool.backends.addr = \"h:0\": give \"HOST:PORT\" or \"[IPV6]:PORT\", with a port from 1 to 65535",
            "4:58: pool.backends.addr = \"h:1\": it repeats line 4, but a backend stands once in its list",
            "4:74: pool.backends.weight = 0: give a whole number from 1 to 1000",
            "9:8: pool.name = \"base\": it repeats line 2, but each pool has its own name",
        ],
    );
}

#[test]
fn discovery_goes_one_way() {
    let with = |discovery: &str, expected: &[&str]| {
        check(
            &format!("[[pool]]\nname = \"p\"\nmodels = [\"m\"]\ndiscovery = {discovery}\n"),
            expected,
        );
    };
    with("{ file = \"b.toml\" }", &[]);
    with(
        "{ file = \"b.toml\", interval = \"5s\" }",
        &["4:43: pool.discovery.interval = \"5s\": it goes with dns: leave it out"],
    );
    with(
        "{}",
        &["4:13: pool.discovery: give exactly one of file, dns and etcd"],
    );
    with(
        "{ dns = \"a:1\", file = \"x\" }",
        &["4:13: pool.discovery: give exactly one of file, dns and etcd"],
    );
    with(
        "{ etcd = [\"h:2379\"] }",
        &[
            "4:13: pool.discovery.prefix is missing: give what the backends' keys start with",
            "4:23: pool.discovery.etcd = \"h:2379\": give a URL as \"http://127.0.0.1:2379\"",
        ],
    );
}

#[test]
fn a_model_belongs_to_the_first_pool_that_lists_it() {
    let two = |first: &str, second: &str| {
        format!(
            "[[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{{ addr = \"h:1\" }}]\n{first}\n\
                 [[pool]]\nname = \"q\"\nmodels = [\"m\"]\nbackends = [{{ addr = \"h:1\" }}]\n{second}\n"
        )
    };
    check(
        &two("", ""),
        &[
            "8:11: pool.models = \"m\": pool \"p\" (line 3) takes this model's requests, not \"q\": give one of them another public name, or list \"q\" in the fallback of \"p\"",
        ],
    );
    check(
        &two("", "fallback = [\"p\"]"),
        &[
            "8:11: pool.models = \"m\": pool \"p\" (line 3) takes this model's requests, not \"q\": put \"q\" above \"p\"",
        ],
    );
    check(&two("fallback = [\"q\"]", ""), &[]);
    check(
        "[[pool]]\nname = \"p\"\nmodels = [\"m\", \"m\"]\nbackends = [{ addr = \"h:1\" }]\n",
        &["3:16: pool.models = \"m\": it stands twice in the list"],
    );
}

#[test]
fn a_fallback_is_another_pool_that_exists() {
    pool(
        "fallback = [\"p\", \"base\", \"base\", \"x\"]\n",
        &[
            "5:13: pool.fallback = \"p\": a pool cannot fall back to itself",
            "5:26: pool.fallback = \"base\": it stands twice in the list",
            "5:34: pool.fallback = \"x\": no pool has this name",
        ],
    );
}

#[test]
fn header_edits_leave_the_framing_alone_and_hide_values() {
    pool(
        "headers = { set = { \"Content-Length\" = \"1\", A = \"sk-oops\\n\" }, remove = [\"b c\"] }\n",
        &[
            "5:21: pool.headers.set.Content-Length: give a header's name that does not frame the message",
            "5:49: pool.headers.set.A: give a header's value as plain ASCII in quotes, without spaces around it",
            "5:74: pool.headers.remove = \"b c\": give the name of a header",
        ],
    );
}

#[test]
fn a_route_has_the_keys_of_its_kind() {
    check(
        "[[route]]\nkind = \"static\"\nto = \"/x\"\nwebsocket = true\nindex = \"a/b\"\n",
        &[
            "1:1: route.root is missing: give the folder",
            "3:6: route.to = \"/x\": it goes with kind = \"redirect\": leave it out",
            "4:13: route.websocket = true: it goes with kind = \"proxy\": leave it out",
            "5:9: route.index = \"a/b\": give a file's name without /",
        ],
    );
    check(
        "[[route]]\nroot = \"/\"\n",
        &["1:1: route.kind is missing: give \"llm\", \"proxy\", \"static\" or \"redirect\""],
    );
    check(
        "[[route]]\nkind = \"proxy\"\nbalance = \"affinity\"\n",
        &[
            "1:1: route.backends is missing: give at least one { addr = \"HOST:PORT\" }",
            "3:11: route.balance = \"affinity\": give \"round_robin\", \"least_streams\" or \"hash\"",
        ],
    );
}

#[test]
fn what_a_route_matches_is_checked() {
    check(
        "[[route]]\nkind = \"llm\"\nscheme = \"ftp\"\nhost = \"a.b:80\"\npath = \"v1/*\"\n",
        &[
            "3:10: route.scheme = \"ftp\": give \"http\" or \"https\"",
            "4:8: route.host = \"a.b:80\": give a host name without scheme and port",
            "5:8: route.path = \"v1/*\": give a path as \"/v1/models\", or \"/v1/*\" for all that start so",
        ],
    );
    check(
        "[[route]]\nkind = \"llm\"\nhost = \"A.b\"\n[[route]]\nkind = \"llm\"\nhost = \"a.B\"\n",
        &[
            "4:1: route: it repeats line 1, but the first match wins, so this route is never reached",
        ],
    );
    check(
        "[[route]]\nkind = \"redirect\"\nto = \"https://{hots}/\"\nstatus = 304\n",
        &[
            "3:6: route.to = \"https://{hots}/\": give a path or an http(s) URL; {host} and {uri} stand for the request's own",
            "4:10: route.status = 304: give 301, 302, 303, 307 or 308",
        ],
    );
    check(
        "[[route]]\nkind = \"llm\"\ncors = { origins = [\"https://a.b/\", \"*\"] }\n",
        &[
            "3:21: route.cors.origins = \"https://a.b/\": give \"*\" or an origin as \"https://app.example\", without a path",
        ],
    );
}

#[test]
fn a_file_must_listen_somewhere_and_serve_something() {
    let (_, findings, _) = Scratch::new(&[]).read("");
    let messages: Vec<String> = findings
        .iter()
        .map(|f| format!("{}:{}: {}", f.line, f.column, f.message))
        .collect();
    assert_eq!(
        messages,
        [
            "1:1: listen is missing: give at least one [[listen]] with its addr",
            "1:1: pool is missing: give at least one [[pool]] for the models, or only routes of other kinds",
        ]
    );
}

#[test]
fn syntax_errors_hide_nothing_that_can_still_be_understood() {
    check(
        "[server]\nthreads = \nthreads_ = 1\nmax_body = 32x\n[log]\nlevel = \"loud\"\n",
        &[
            "2:11: syntax error: string values must be quoted, expected literal string",
            "3:1: unknown key server.threads_: did you mean threads?",
            "4:12: syntax error: string values must be quoted, expected literal string",
            "6:9: log.level = \"loud\": give one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"",
        ],
    );
}

#[test]
fn after_a_broken_header_only_what_stands_above_it_is_judged() {
    check(
        "[server]\nthreds = 1\n[[listen]\naddr = 5\n",
        &[
            "2:1: unknown key server.threds: did you mean threads?",
            "3:10: syntax error: unclosed array table, expected `]`",
        ],
    );
    check(
        "[log]\n[log]\nlevel = 1\n",
        &["2:2: syntax error: duplicate key"],
    );
}

#[test]
fn what_a_syntax_error_hides_is_not_called_missing() {
    check(
        "[admin]\naddr = \"0.0.0.0:9\"\ntoken = { env = T }\n[[listen]]\naddr = \"h:1\"\ntls = x\nclient_auth = \"optional\"\n",
        &[
            "3:17: syntax error: invalid boolean, expected `true`",
            "6:7: syntax error: string values must be quoted, expected literal string",
        ],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_a_finding() {
    let scratch = Scratch::new(&[("latin", "[log]\nlevel = \"\u{e9}\"\n")]);
    let gone = scratch.0.join("gone.toml");
    let findings = crate::config::load(&gone).unwrap_err();
    assert_eq!(
        findings.to_string(),
        format!(
            "{}:1:1: cannot be read: No such file or directory (os error 2)",
            gone.display()
        )
    );
    let latin = scratch.0.join("latin");
    fs::write(&latin, b"[log]\nlevel = \"\xe9\"\n").unwrap();
    let findings = crate::config::load(&latin).unwrap_err();
    assert_eq!(
        findings.to_string(),
        format!(
            "{}:2:10: the file is not UTF-8 from here on: save it as UTF-8",
            latin.display()
        )
    );
}

#[test]
fn whatever_is_left_of_a_file_it_is_judged_without_a_panic() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    let lines: Vec<&str> = full.lines().filter(|l| !l.starts_with('#')).collect();
    let full = lines.join("\n");
    for cut in (0..full.len()).step_by(23) {
        for text in [
            &full[..cut],
            &full[cut..],
            &format!("{}\u{0}\"[{{{}", &full[..cut], &full[cut..]),
        ] {
            let (_, findings, _) = scratch.read(text);
            let count = text.lines().count() + 1;
            assert!(
                findings
                    .iter()
                    .all(|f| f.line >= 1 && f.line <= count && f.column >= 1),
                "{findings}"
            );
        }
    }
}
