//! Files that are no TOML, or not enough of a configuration.

use super::*;

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
