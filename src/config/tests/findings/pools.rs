//! What is found wrong with pools and routes.

use super::*;

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
