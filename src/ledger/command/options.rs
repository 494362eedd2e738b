//! The words of a ledger command, read.

use super::Failure;
use super::output::Format;
use crate::ledger::store::{Filter, StateFilter};
use crate::record::State;
use crate::tenant::TenantName;
use std::path::PathBuf;

const LIMIT: usize = 50;

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    Help,
    List { limit: usize },
    Show(String),
    Report,
    Export,
    Reconcile { file: PathBuf, dry: bool },
}

/// A whole command.
#[derive(Debug)]
pub(super) struct Options {
    pub action: Action,
    pub tenant: Option<TenantName>,
    pub state: Option<StateFilter>,
    pub format: Format,
}

impl Options {
    pub fn filter(&self) -> Filter {
        Filter {
            tenant: self.tenant.clone(),
            state: self.state,
        }
    }
}

/// The words as given, sorted by kind.
#[derive(Debug, Default)]
struct Given {
    tenant: Option<String>,
    state: Option<String>,
    limit: Option<String>,
    format: Option<String>,
    dry: bool,
    help: bool,
    plain: Vec<String>,
}

/// Reads a command.
pub(super) fn parse(args: &[String]) -> Result<Options, Failure> {
    let mut given = sort(args)?;
    if given.help || given.plain == ["help"] {
        return Ok(help());
    }
    if given.plain.is_empty() {
        return usage("a command is missing: list, show, report, export or reconcile");
    }
    let name = given.plain.remove(0);
    let action = action(&name, &given)?;
    refuse_what_does_not_apply(&action, &name, &given)?;
    let format = match given.format.as_deref() {
        None => default_format(&action),
        Some(word) => Format::from_word(word).ok_or_else(|| {
            Failure::Usage(format!(
                "--format is {word:?}, not table, csv, json or jsonl"
            ))
        })?,
    };
    Ok(Options {
        action,
        tenant: given.tenant.as_deref().map(TenantName::new),
        state: given.state.as_deref().map(state).transpose()?,
        format,
    })
}

fn help() -> Options {
    Options {
        action: Action::Help,
        tenant: None,
        state: None,
        format: Format::Table,
    }
}

fn usage<T>(why: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(why.into()))
}

fn sort(args: &[String]) -> Result<Given, Failure> {
    let mut given = Given::default();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            given.plain.extend(rest.cloned());
            break;
        }
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let place = match name {
            "--tenant" => &mut given.tenant,
            "--state" => &mut given.state,
            "--limit" => &mut given.limit,
            "--format" => &mut given.format,
            _ => {
                flag_or_plain(&mut given, word)?;
                continue;
            }
        };
        let value = joined.or_else(|| rest.next().cloned());
        let Some(value) = value else {
            return usage(format!("{name} needs a value"));
        };
        if place.replace(value).is_some() {
            return usage(format!("{name} stands twice"));
        }
    }
    Ok(given)
}

fn flag_or_plain(given: &mut Given, word: &str) -> Result<(), Failure> {
    match word {
        "--dry-run" => given.dry = true,
        "--help" | "-h" => given.help = true,
        _ if word.starts_with('-') && word.len() > 1 => {
            return usage(format!(
                "there is no option {word} (an id that begins with - comes after --)"
            ));
        }
        _ => given.plain.push(word.to_owned()),
    }
    Ok(())
}

fn action(name: &str, given: &Given) -> Result<Action, Failure> {
    let one = |what: &str| match given.plain.as_slice() {
        [word] => Ok(word.clone()),
        [] => usage(format!("ledger {name} needs {what}")),
        [_, more, ..] => usage(format!(
            "ledger {name} takes one {what}, {more:?} is too much"
        )),
    };
    let action = match name {
        "list" => Action::List {
            limit: limit(given.limit.as_deref())?,
        },
        "show" => return Ok(Action::Show(one("ID")?)),
        "report" => Action::Report,
        "export" => Action::Export,
        "reconcile" => {
            return Ok(Action::Reconcile {
                file: PathBuf::from(one("FILE")?),
                dry: given.dry,
            });
        }
        _ => return usage(format!("there is no command `ledger {name}`")),
    };
    match given.plain.first() {
        Some(more) => usage(format!("ledger {name} takes no {more:?}")),
        None => Ok(action),
    }
}

fn refuse_what_does_not_apply(action: &Action, name: &str, given: &Given) -> Result<(), Failure> {
    let lists = matches!(action, Action::List { .. });
    let reconciles = matches!(action, Action::Reconcile { .. });
    let filters = lists || matches!(action, Action::Export);
    let wrong = [
        ("--state", given.state.is_some() && !filters),
        ("--limit", given.limit.is_some() && !lists),
        ("--dry-run", given.dry && !reconciles),
        ("--format", given.format.is_some() && reconciles),
    ];
    match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
        Some((option, _)) => usage(format!("ledger {name} takes no {option}")),
        None => Ok(()),
    }
}

fn limit(word: Option<&str>) -> Result<usize, Failure> {
    match word.map(str::parse) {
        None => Ok(LIMIT),
        Some(Ok(limit)) if limit > 0 => Ok(limit),
        Some(_) => usage("--limit is a whole number from 1"),
    }
}

fn state(word: &str) -> Result<StateFilter, Failure> {
    match word.to_ascii_uppercase().as_str() {
        "OPEN" => Ok(StateFilter::Open),
        "UNKNOWN" => Ok(StateFilter::Unknown),
        upper => State::from_word(upper).map(StateFilter::Is).ok_or_else(|| {
            let all: Vec<&str> = State::ALL.iter().map(|s| s.as_str()).collect();
            Failure::Usage(format!(
                "--state is {word:?}, not {}, open or unknown",
                all.join(", ")
            ))
        }),
    }
}

fn default_format(action: &Action) -> Format {
    match action {
        Action::Help | Action::List { .. } | Action::Report | Action::Reconcile { .. } => {
            Format::Table
        }
        Action::Show(_) => Format::Json,
        Action::Export => Format::Jsonl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn parsed(line: &str) -> Options {
        parse(&words(line)).unwrap_or_else(|e| panic!("{line}: {e:?}"))
    }

    #[test]
    fn options_stand_before_or_after_what_they_belong_to() {
        for line in [
            "show --tenant acme r1",
            "--tenant=acme show r1",
            "show r1 --tenant acme",
        ] {
            let options = parsed(line);
            assert_eq!(options.action, Action::Show("r1".into()), "{line}");
            assert_eq!(options.tenant, Some(TenantName::new("acme")), "{line}");
        }
    }

    #[test]
    fn a_state_is_named_in_either_case() {
        assert_eq!(
            parsed("list --state failed").state,
            Some(StateFilter::Is(State::Failed))
        );
        assert_eq!(
            parsed("list --state FAILED").state,
            Some(StateFilter::Is(State::Failed))
        );
        assert_eq!(
            parsed("export --state unknown").state,
            Some(StateFilter::Unknown)
        );
    }

    #[test]
    fn an_id_that_looks_like_an_option_comes_after_two_dashes() {
        assert_eq!(parsed("show -- -x").action, Action::Show("-x".into()));
    }

    #[test]
    fn help_is_asked_for_in_several_ways() {
        for line in ["help", "--help", "-h", "list --help", "show r1 -h"] {
            assert_eq!(parsed(line).action, Action::Help, "{line}");
        }
        assert_eq!(parsed("show help").action, Action::Show("help".into()));
    }

    #[test]
    fn words_that_make_no_command_are_a_usage_error() {
        for line in [
            "",
            "lists",
            "list extra",
            "list --limit 0",
            "list --limit x",
            "list --format xml",
            "list --state GONE",
            "list --tenant",
            "list --tenant a --tenant b",
            "list --dry-run",
            "show",
            "show a b",
            "show a --state FAILED",
            "report --limit 3",
            "reconcile",
            "reconcile a b",
            "reconcile a --format csv",
            "export --what",
        ] {
            assert!(
                matches!(parse(&words(line)), Err(Failure::Usage(_))),
                "{line}"
            );
        }
    }
}
