//! What the values of a file become.

use super::*;
use crate::budget::Units;
use crate::config::*;
use std::time::Duration;

#[test]
fn a_file_of_the_least_gets_every_default() {
    let c = good("");
    assert_eq!(c.server.max_body, 32 << 20);
    assert_eq!(c.server.drain_timeout, Duration::from_secs(300));
    assert_eq!(c.server.data_dir, Path::new("/var/lib/streamgate"));
    assert_eq!(c.log.error, LogTarget::Stderr);
    assert_eq!(c.ledger.retention, Duration::from_secs(30 * 86400));
    assert!(c.admin.is_none() && c.shed.is_none() && c.cluster.is_none());
    assert!(c.tenants.is_empty() && c.routes.is_empty());
    let pool = &c.pools[0];
    assert_eq!(pool.protocol, Protocol::OpenAi);
    assert_eq!(
        (pool.bytes_per_unit, pool.default_output_units),
        (4, Units(1024))
    );
    assert_eq!((pool.retry.attempts, pool.retry.budget), (2, 0.2));
    assert_eq!(pool.timeouts.total, Duration::ZERO);
    assert!(pool.queue.is_none() && pool.health.is_none() && pool.breaker.is_none());
    assert!(pool.api_key.is_none() && pool.tls.is_none() && pool.max_streams.is_none());
    assert_eq!(pool.stream.heartbeat, Duration::from_secs(15));
    assert!(pool.stream.hold_preamble && !pool.stream.resumable);
}

#[test]
fn a_table_keeps_the_defaults_of_what_it_leaves_out() {
    let c = good(
        "[server]\nmax_headers = { count = 7 }\ntimeouts.body = \"1s\"\n[[tenant]]\nname = \"t\"\nkeys = []\n\
         [[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{ addr = \"h:1\" }]\nqueue = {}\nhealth = {}\nbreaker = {}\n\
         [pool.stream]\nusage = \"keep\"\n",
    );
    assert_eq!(
        (c.server.max_headers.count, c.server.max_headers.size),
        (7, 65536)
    );
    assert_eq!(c.server.timeouts.body, Duration::from_secs(1));
    assert_eq!(c.server.timeouts.header, Duration::from_secs(10));
    let p = &c.pools[0];
    assert_eq!(
        (p.stream.usage, p.stream.line_ends),
        (UsageMode::Keep, LineEnds::Keep)
    );
    let queue = p.queue.as_ref().unwrap();
    assert_eq!(
        (queue.max_wait, queue.max_len),
        (Duration::from_secs(2), 256)
    );
    assert_eq!(p.health.as_ref().unwrap().path, "/health");
    assert_eq!(p.breaker.as_ref().unwrap().errors, 5);
    let t = &c.tenants[0];
    assert_eq!(
        (t.priority, t.weight, t.clamp),
        (Priority::Normal, 1, false)
    );
    assert_eq!(
        (t.charge_cancelled, &t.models),
        (ChargeCancelled::Generated, &ModelSet::All)
    );
}

#[test]
fn relative_paths_start_at_the_files_folder_and_the_ledgers_at_data_dir() {
    let scratch = Scratch::new(&[]);
    let text = "[server]\ndata_dir = \"data\"\npid_file = \"/run/x.pid\"\n[log]\naccess = \"a.log\"\nerror = \"stdout\"\n";
    let c = scratch.good(&format!("{text}[ledger]\nurl = \"sqlite:l.db\"\n{BASE}"));
    let at = |path: &str| scratch.0.join(path);
    assert_eq!(c.server.data_dir, at("data"));
    assert_eq!(c.server.pid_file, Path::new("/run/x.pid"));
    assert_eq!(c.log.access, LogTarget::File(at("a.log")));
    assert_eq!(c.log.error, LogTarget::Stdout);
    assert!(matches!(&c.ledger.store, LedgerStore::Sqlite(p) if *p == at("data/l.db")));
    assert_eq!(c.file, scratch.file());
}

#[test]
fn secrets_come_from_the_environment_or_a_file_without_its_last_line_end() {
    let scratch = Scratch::new(&[
        ("unix", "sk-unix\n"),
        ("dos", "sk-dos\r\n"),
        ("bare", "sk bare "),
    ]);
    let key = |source: &str| {
        let pool = format!(
            "[[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{{ addr = \"h:1\" }}]\napi_key = {source}\n"
        );
        let c = scratch.good(&format!("{pool}{BASE}"));
        c.pools[0].api_key.clone().unwrap()
    };
    assert_eq!(key("{ env = \"K\" }").expose(), "sk-in-env-K");
    assert_eq!(key("{ file = \"unix\" }").expose(), "sk-unix");
    assert_eq!(key("{ file = \"dos\" }").expose(), "sk-dos");
    assert_eq!(key("{ file = \"bare\" }").expose(), "sk bare ");
}

#[test]
fn a_key_is_its_hash_wherever_it_comes_from() {
    let scratch = Scratch::new(&[("k", "abc\n")]);
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let from = |key: &str| {
        let text = format!("[[tenant]]\nname = \"t\"\nkeys = [{key}]\n{BASE}");
        let c = scratch.good(&text);
        (c.tenants[0].keys[0], c.unlisted_keys)
    };
    let (listed, unlisted) = from(&format!("{{ sha256 = \"{hash}\" }}"));
    assert_eq!(
        (listed.0[..3].to_vec(), unlisted),
        (vec![0xba, 0x78, 0x16], vec![])
    );
    assert_eq!(from("{ file = \"k\" }"), (listed, vec![listed]));
    assert_eq!(
        from(&format!("{{ sha256 = \"{}\" }}", hash.to_uppercase())),
        (listed, vec![])
    );
}

#[test]
fn models_map_public_names_to_the_backends_own() {
    let c = good(
        "[[pool]]\nname = \"p\"\nmodels = [\"m\", { public = \"f\", upstream = \"org/F\" }]\nbackends = [{ addr = \"h:1\" }]\n",
    );
    let model = |public: &str, upstream: &str| Model {
        public: public.to_owned(),
        upstream: upstream.to_owned(),
    };
    assert_eq!(c.pools[0].models, [model("m", "m"), model("f", "org/F")]);
}

#[test]
fn a_fallback_may_list_the_models_of_the_pool_it_stands_in_for_or_none() {
    let c = good(
        "[[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{ addr = \"h:1\" }]\nfallback = [\"q\", \"r\"]\n\
         [[pool]]\nname = \"q\"\nmodels = [{ public = \"m\", upstream = \"other\" }]\nbackends = [{ addr = \"h:2\" }]\n\
         [[pool]]\nname = \"r\"\nbackends = [{ addr = \"h:3\" }]\n",
    );
    assert_eq!(c.pools[0].fallback, ["q", "r"]);
    assert!(c.pools[2].models.is_empty());
}

#[test]
fn a_gateway_of_plain_routes_needs_no_pool() {
    let text = "[[listen]]\naddr = \"[::1]:0\"\n[[listen]]\naddr = \"127.0.0.1:0\"\n[[listen]]\naddr = \"127.0.0.1:0\"\n\
                [[route]]\nkind = \"redirect\"\nto = \"https://{host}{uri}\"\n";
    let c = Scratch::new(&[]).good(text);
    assert_eq!((c.pools.len(), c.listen.len()), (0, 3));
    let route = &c.routes[0];
    assert_eq!(route.path, "/*");
    assert!(matches!(
        &route.kind,
        RouteKind::Redirect { status: 308, .. }
    ));
}

#[test]
fn what_is_not_in_effect_is_named_once_where_it_stands_first() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    let more = "\n[[tenant]]\nname = \"more\"\nkeys = []\nweight = 2\nclamp = true\n";
    let config = scratch.good(&format!("{full}{more}"));
    let place = format!("{}:", scratch.file().display());
    let mut named = Vec::new();
    for line in &config.not_in_effect {
        let (line, rest) = line.strip_prefix(&place).unwrap().split_once(':').unwrap();
        let key = rest.split(' ').nth(1).unwrap();
        let written = full
            .lines()
            .nth(line.parse::<usize>().unwrap() - 1)
            .unwrap();
        assert!(
            written.contains(key.rsplit('.').next().unwrap()),
            "{key}: {written}"
        );
        named.push(key);
    }
    named.sort_unstable();
    let mut keys = super::super::pending::KEYS.to_vec();
    keys.sort_unstable();
    assert_eq!(named, keys);
}
