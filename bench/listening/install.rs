//! nginx, found or installed.

use crate::nginx;
use std::process::Command;

/// Makes sure that there is one, or says what to do.
pub fn nginx() -> Result<(), String> {
    if nginx::version().is_some() {
        return Ok(());
    }
    println!("nginx is missing; installing it with apt-get");
    apt(&["update", "-q"])?;
    apt(&[
        "install",
        "-q",
        "--yes",
        "--no-install-recommends",
        "nginx-light",
    ])?;
    match nginx::version() {
        Some(_) => Ok(()),
        None => Err(MISSING.to_owned()),
    }
}

const MISSING: &str = "this benchmark compares with nginx, which is not here and could not be installed; \
                       install the package nginx-light, or nginx, and run it again";

fn apt(args: &[&str]) -> Result<(), String> {
    let ran = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status();
    match ran {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{MISSING} (apt-get {}: {status})", args.join(" "))),
        Err(e) => Err(format!("{MISSING} (apt-get: {e})")),
    }
}
