//! Every kind of finding: some lines, and exactly what is said of them.

mod listeners;
mod pools;
mod syntax;
mod tenants;

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
