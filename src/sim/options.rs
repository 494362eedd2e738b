//! How the simulator is started: its options and how they are read from the command line.

use std::str::FromStr;
use std::time::Duration;

/// What `streamgate sim --help` says.
pub const USAGE: &str = "\
usage: streamgate sim [flags]

An inference engine without a model, for trying and measuring what stands before it.

  --listen ADDR               where it listens (127.0.0.1:8000)
  --prefill-ms N              time before the first token (20; fractions allowed)
  --prefill-ms-per-token N    and for each word of the prompt (1)
  --decode-ms N               time from one token to the next (10)
  --notice at-once|on-write   when a client that left is noticed: by reading, or only when a write to it fails (at-once)
  --max-running N             requests that run at once, the others wait in order of arrival (no limit)
  --model NAME                a model it lists, may be repeated (sim-1 and m); others are served as the first

A request's header X-Sim scripts faults, several divided by commas or blanks. N counts content events, @0 is before the first.

  stall=3s@N                  stops for that time after N events; may stand more than once
  reset@N  fin@N  torn@N      resets, closes without the last chunk, or sends half an event and then resets
  error@N                     an error event, then the end without [DONE]; not streamed: status 500
  status=CODE                 answers with this error status (400 to 599), 429 with Retry-After
  header-delay=5s             waits before the response head
  crlf  cr                    line ends of the event stream
  no-usage  no-done           leaves out the usage, the protocol's end
  split=N                     N bytes of the body per write
  event-bytes=2MiB            makes each content event this long

A document that is not streamed takes status, header-delay, stall, error, no-usage and split; reset, fin and torn cut it in half.
";

/// When a client that closed its connection is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// When a write to it fails, as with engines that never read while they answer.
    OnWrite,
    /// As soon as its FIN or RST arrives.
    AtOnce,
}

/// The simulator's options; `Default` is what the command line gives without flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address as given, `HOST:PORT`.
    pub listen: String,
    pub prefill: Duration,
    pub prefill_per_token: Duration,
    pub decode: Duration,
    pub notice: Notice,
    pub max_running: Option<usize>,
    /// What `/v1/models` lists and the metrics are labelled with. Empty: `sim`.
    pub models: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: "127.0.0.1:8000".to_owned(),
            prefill: Duration::from_millis(20),
            prefill_per_token: Duration::from_millis(1),
            decode: Duration::from_millis(10),
            notice: Notice::AtOnce,
            max_running: None,
            models: vec!["sim-1".to_owned(), "m".to_owned()],
        }
    }
}

impl Options {
    /// Reads flags as `--flag value` or `--flag=value`. The message names the flag and what it takes.
    pub fn from_args(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut models = Vec::new();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (arg.as_str(), None),
            };
            let mut value = || {
                inline
                    .or_else(|| rest.next().map(String::as_str))
                    .ok_or_else(|| format!("{flag} needs a value"))
            };
            match flag {
                "--listen" => options.listen = value()?.to_owned(),
                "--prefill-ms" => options.prefill = millis(flag, value()?)?,
                "--prefill-ms-per-token" => options.prefill_per_token = millis(flag, value()?)?,
                "--decode-ms" => options.decode = millis(flag, value()?)?,
                "--notice" => options.notice = value()?.parse()?,
                "--max-running" => options.max_running = Some(slots(flag, value()?)?),
                "--model" => models.push(model(flag, value()?)?),
                _ => return Err(unknown(flag)),
            }
        }
        if !models.is_empty() {
            options.models = models;
        }
        Ok(options)
    }
}

impl FromStr for Notice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on-write" => Ok(Notice::OnWrite),
            "at-once" => Ok(Notice::AtOnce),
            _ => Err(format!(
                "--notice is {text:?}; it must be at-once or on-write"
            )),
        }
    }
}

/// A time in milliseconds, at most an hour.
fn millis(flag: &str, text: &str) -> Result<Duration, String> {
    let wrong = || format!("{flag} is {text:?}; it must be milliseconds from 0 to 3600000");
    let ms: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.0..=3_600_000.0).contains(&ms) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(ms / 1000.0).map_err(|_| wrong())
}

fn slots(flag: &str, text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!(
            "{flag} is {text:?}; it must be a whole number of at least 1"
        )),
    }
}

fn model(flag: &str, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!("{flag} is empty; name a model"));
    }
    Ok(text.to_owned())
}

fn unknown(flag: &str) -> String {
    format!("unknown flag {flag:?}; `streamgate sim --help` lists the flags")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Options::from_args(&args)
    }

    #[test]
    fn every_flag_is_read_in_both_spellings() {
        let spaced = read(
            "--listen 127.0.0.1:9 --prefill-ms 5 --prefill-ms-per-token 0 --decode-ms 2.5 --notice on-write --max-running 3 --model a --model b",
        );
        let joined = read(
            "--listen=127.0.0.1:9 --prefill-ms=5 --prefill-ms-per-token=0 --decode-ms=2.5 --notice=on-write --max-running=3 --model=a --model=b",
        );
        let expected = Options {
            listen: "127.0.0.1:9".to_owned(),
            prefill: Duration::from_millis(5),
            prefill_per_token: Duration::ZERO,
            decode: Duration::from_micros(2500),
            notice: Notice::OnWrite,
            max_running: Some(3),
            models: vec!["a".to_owned(), "b".to_owned()],
        };
        assert_eq!(spaced.as_ref(), Ok(&expected));
        assert_eq!(joined.as_ref(), Ok(&expected));
    }

    #[test]
    fn no_flags_give_the_defaults() {
        assert_eq!(Options::from_args(&[]), Ok(Options::default()));
    }

    #[test]
    fn a_wrong_flag_is_named_with_what_it_takes() {
        for (line, names) in [
            ("--prefill-ms -1", "--prefill-ms is \"-1\""),
            ("--decode-ms NaN", "--decode-ms is \"NaN\""),
            ("--decode-ms inf", "--decode-ms is \"inf\""),
            ("--decode-ms 1e300", "--decode-ms is \"1e300\""),
            ("--notice later", "--notice is \"later\""),
            ("--max-running 0", "--max-running is \"0\""),
            ("--max-running", "--max-running needs a value"),
            ("--model=", "--model is empty"),
            ("--colour red", "unknown flag \"--colour\""),
            ("stray", "unknown flag \"stray\""),
        ] {
            let message = read(line).expect_err(line);
            assert!(message.contains(names), "{line}: {message}");
        }
    }

    #[test]
    fn the_usage_text_names_every_flag() {
        for flag in [
            "--listen",
            "--prefill-ms",
            "--prefill-ms-per-token",
            "--decode-ms",
            "--notice",
            "--max-running",
            "--model",
        ] {
            assert!(USAGE.contains(flag), "{flag}");
        }
    }
}
