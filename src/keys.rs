//! `streamgate key new`: an API key, shown once, with the config line that holds only its hash.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Random bytes of a key: more than can be guessed.
const KEY_BYTES: usize = 32;

/// Makes a key for `--tenant NAME`; what is to be printed.
pub fn new_key(args: &[String]) -> Result<String, String> {
    const FORM: &str = "the form is `streamgate key new --tenant NAME`";
    let tenant = match args {
        [new, flag, name] if new == "new" && flag == "--tenant" => name.as_str(),
        [new, flag] if new == "new" => flag.strip_prefix("--tenant=").ok_or(FORM)?,
        _ => return Err(FORM.to_owned()),
    };
    if tenant.is_empty() || tenant.contains(['"', '\\']) || tenant.contains(char::is_control) {
        return Err(format!("--tenant {tenant:?} is no tenant's name"));
    }
    let mut random = [0_u8; KEY_BYTES];
    getrandom::fill(&mut random).map_err(|e| format!("the system gives no random bytes: {e}"))?;
    let key = format!("sk-{}", hex(&random));
    let hash = hex(&Sha256::digest(key.as_bytes()));
    Ok(format!(
        "{key}\n\nThis key is not shown again. In the config, tenant \"{tenant}\" gets its hash:\n\n\
         [[tenant]]\nname = \"{tenant}\"\nkeys = [{{ sha256 = \"{hash}\" }}]\n"
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // writing to a string cannot fail
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_with_its_hash_and_each_is_another() {
        let args = ["new", "--tenant", "acme"].map(str::to_owned);
        let text = new_key(&args).unwrap();
        let key = text.lines().next().unwrap();
        assert!(
            text.contains(&hex(&Sha256::digest(key.as_bytes()))),
            "{text}"
        );
        assert_ne!(text, new_key(&args).unwrap());
    }

    #[test]
    fn a_name_that_would_break_the_config_is_refused() {
        for name in ["", "a\"b", "a\nb"] {
            let args = ["new", "--tenant", name].map(str::to_owned);
            assert!(new_key(&args).is_err(), "{name:?}");
        }
    }
}
