//! nginx with one worker and `proxy_buffering off`, where it is installed.

use crate::support::scratch::Scratch;
use crate::support::{ports, wait};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

pub struct Nginx {
    addr: String,
    master: Child,
    _scratch: Scratch,
}

pub fn is_installed() -> bool {
    version().is_some()
}

/// Its name and version.
pub fn version() -> Option<String> {
    let told = Command::new("nginx").arg("-v").output().ok()?;
    let line = String::from_utf8_lossy(&told.stderr).into_owned();
    Some(line.trim().trim_start_matches("nginx version: ").to_owned())
}

impl Nginx {
    /// Starts it before an engine.
    pub fn before(engine: &str) -> Nginx {
        let scratch = Scratch::new();
        let addr = ports::free_addr();
        let folder = scratch.path().display();
        let user = if std::fs::metadata("/root/.").is_ok() {
            "user root;"
        } else {
            ""
        };
        let conf = format!(
            "{user} worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log; daemon off;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
             fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen {addr}; location / {{ proxy_pass http://{engine}; proxy_http_version 1.1;\n\
             proxy_set_header Connection \"\"; proxy_buffering off; proxy_read_timeout 1h; }} }} }}\n"
        );
        let file = scratch.write("nginx.conf", conf);
        let master = Command::new("nginx")
            .arg("-c")
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx starts");
        wait::until("nginx to listen", || {
            TcpStream::connect(&addr)
                .map(drop)
                .map_err(|e| e.to_string())
        });
        Nginx {
            addr,
            master,
            _scratch: scratch,
        }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// The master, which does nothing, and its worker.
    pub fn pids(&self) -> Vec<u32> {
        let master = self.master.id();
        let path = format!("/proc/{master}/task/{master}/children");
        let children = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let worker = children
            .split_whitespace()
            .map(|pid| pid.parse().expect("a pid"));
        std::iter::once(master).chain(worker).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let stop = format!("kill -s TERM {}", self.master.id());
        Command::new("sh")
            .args(["-c", &stop])
            .status()
            .expect("sh runs");
        self.master.wait().ok();
    }
}
